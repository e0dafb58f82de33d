	# Names of fields are compared as nginx spells them.
	if (defined $reply && $reply =~ /^(HTTP\/1.*?\r?\n\r?\n)(.*)$/s) {
		my ($head, $content) = ($1, $2);
		my %other = (etag => 'ETag', 'www-authenticate' => 'WWW-Authenticate', dav => 'DAV', 'ms-author-via' => 'MS-Author-Via');
		$head =~ s/^([A-Za-z0-9-]+):/my $name = lc $1; ($other{$name} || join('-', map { ucfirst } split(\/-\/, $name))) . ':'/gme;
		$reply = $head . $content;
	}
