
	# Lines of a head end with CRLF.
	my ($head, $rest) = split(/(?<=\n)\r?\n/, $request, 2);
	if (defined $rest) {
		$head =~ s/\r?\n/\r\n/g;
		$request = "$head\r\n$rest";
	}
