
	# Lines of a head end with CRLF, and those of another one behind it, where there is no content between them.
	my $heads = '';
	for (;;) {
		my ($head, $rest) = split(/(?<=\n)\r?\n/, $request, 2);
		last unless defined $rest;
		$head =~ s/\r?\n/\r\n/g;
		$heads .= "$head\r\n";
		$request = $rest;
		last if $head =~ /^(?:content-length|transfer-encoding):/mi || $request !~ /^[A-Z]+ \S+ HTTP\/1/;
	}
	$request = $heads . $request;
