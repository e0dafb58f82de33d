//! Names of the kernel's functions: `/proc/kallsyms`.

/// Functions by the address at which they begin.
#[derive(Debug, Default)]
pub(super) struct KernelSymbols(Vec<(u64, String)>);

impl KernelSymbols {
    /// Those of the running kernel; none where it hides its addresses.
    pub(super) fn load() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    fn parse(kallsyms: &str) -> Self {
        let symbol = |line: &str| {
            let mut fields = line.split_ascii_whitespace();
            let address = u64::from_str_radix(fields.next()?, 16).ok()?;
            let is_code = matches!(fields.next()?, "t" | "T" | "w" | "W");
            let name = fields.next()?;
            (address != 0 && is_code).then(|| (address, name.to_owned()))
        };
        let mut symbols: Vec<_> = kallsyms.lines().filter_map(symbol).collect();
        symbols.sort_by_key(|(address, _)| *address);
        Self(symbols)
    }

    /// The function that `address` lies in.
    pub(super) fn name(&self, address: u64) -> Option<&str> {
        let after = self.0.partition_point(|(begin, _)| *begin <= address);
        let (_, name) = self.0.get(after.checked_sub(1)?)?;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_reaches_to_the_next_one() {
        let symbols = KernelSymbols::parse(
            "ffffffff81000000 T first\nffffffff81000100 t second\t[module]\n\
             ffffffff81000180 D data\n",
        );
        assert_eq!(symbols.name(0xffff_ffff_8100_00ff), Some("first"));
        assert_eq!(symbols.name(0xffff_ffff_8100_0190), Some("second"));
        assert_eq!(symbols.name(0x1000), None);
    }

    #[test]
    fn hidden_addresses_name_nothing() {
        let symbols = KernelSymbols::parse("0000000000000000 T first\n");
        assert_eq!(symbols.name(0xffff_ffff_8100_0000), None);
    }
}
