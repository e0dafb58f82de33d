//! Properties of content by its name: the media type, whether it compresses, how long it may be cached.

use http::HeaderValue;

/// The media type, with a charset where there is text.
pub(crate) fn media_type(name: &str) -> HeaderValue {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    // Types that the table of the crate lacks, or has differently from their registration (RFC 9239).
    let known = match extension.to_ascii_lowercase().as_str() {
        "js" | "mjs" => Some("text/javascript; charset=utf-8"),
        "webmanifest" => Some("application/manifest+json"),
        "atom" => Some("application/atom+xml; charset=utf-8"),
        "rss" => Some("application/rss+xml; charset=utf-8"),
        "map" => Some("application/json"),
        "md" => Some("text/markdown; charset=utf-8"),
        "avif" => Some("image/avif"),
        "jxl" => Some("image/jxl"),
        "ts" => Some("video/mp2t"),
        "m3u8" => Some("application/vnd.apple.mpegurl"),
        "yaml" | "yml" => Some("application/yaml"),
        "toml" => Some("application/toml"),
        _ => None,
    };
    if let Some(known) = known {
        return HeaderValue::from_static(known);
    }
    let guessed = mime_guess::from_ext(extension).first_raw();
    let Some(guessed) = guessed else {
        return HeaderValue::from_static("application/octet-stream");
    };
    let is_text = guessed.starts_with("text/") || guessed == "application/xml";
    let text = if is_text {
        format!("{guessed}; charset=utf-8")
    } else {
        guessed.to_owned()
    };
    HeaderValue::from_str(&text)
        .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"))
}

/// `cache-control` by default: names that hold a hash of the content stay for ever, feeds
/// for an hour, all else is validated each time.
pub(crate) fn cache_control(name: &str) -> HeaderValue {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    HeaderValue::from_static(if has_hash(name) {
        "public, max-age=31536000, immutable"
    } else if ["atom", "rss"].contains(&extension) {
        "public, max-age=3600"
    } else {
        "no-cache"
    })
}

/// Whether a name holds what bundlers put there: `app.3f2a9c1b.js`, `index-B7bPqKx2.css`.
///
/// That is 8 to 64 hexadecimal digits, or 8 letters of both cases and digits, behind a dot or a hyphen and before
/// the extension. A page is never named so.
pub(crate) fn has_hash(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    if ["html", "htm", "xml", "txt", "json", "webmanifest"].contains(&extension) {
        return false;
    }
    // A map is named after what it maps.
    let stem = match extension {
        "map" => stem.rsplit_once('.').map_or(stem, |(stem, _)| stem),
        _ => stem,
    };
    let Some(at) = stem.rfind(['.', '-']) else {
        return false;
    };
    let hash = stem.get(at + 1..).unwrap_or_default();
    let is_hexadecimal = hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_word = hash
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let digits = hash.bytes().filter(u8::is_ascii_digit).count();
    let has_upper = hash.bytes().any(|byte| byte.is_ascii_uppercase());
    let has_lower = hash.bytes().any(|byte| byte.is_ascii_lowercase());
    // A date or a version is digits alone, a word has none.
    let is_mixed = digits > 0 && digits < hash.len();
    let is_long_enough = (8..=64).contains(&hash.len());
    at > 0
        && is_mixed
        && ((is_hexadecimal && is_long_enough)
            || (is_word && hash.len() == 8 && has_upper && has_lower))
}

/// Whether content of that type becomes smaller.
pub(crate) fn compresses(kind: &HeaderValue) -> bool {
    let kind = kind.to_str().unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || [
            "application/json",
            "application/javascript",
            "application/xml",
            "application/wasm",
            "application/yaml",
            "application/toml",
            "application/vnd.apple.mpegurl",
            "application/vnd.ms-fontobject",
            "font/ttf",
            "font/otf",
            "image/bmp",
            "image/x-icon",
        ]
        .contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_by_name() {
        for (name, kind) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a.HTML", "text/html; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.svg", "image/svg+xml"),
            ("a.png", "image/png"),
            ("a.json", "application/json"),
            ("a.wasm", "application/wasm"),
            ("a.woff2", "font/woff2"),
            ("a.txt", "text/plain; charset=utf-8"),
            ("a.xml", "text/xml; charset=utf-8"),
            ("a.webmanifest", "application/manifest+json"),
            ("a.ts", "video/mp2t"),
            ("a.m3u8", "application/vnd.apple.mpegurl"),
            ("a.yaml", "application/yaml"),
            ("a.yml", "application/yaml"),
            ("a.toml", "application/toml"),
            ("a.unknown", "application/octet-stream"),
            ("LICENSE", "application/octet-stream"),
            ("", "application/octet-stream"),
        ] {
            assert_eq!(media_type(name), kind, "{name}");
        }
    }

    #[test]
    fn hashes_are_distinguished_from_words_and_versions() {
        for name in [
            "app.3f2a9c1b.js",
            "app-3f2a9c1b.js.map",
            "index-B7bPqKx2.css",
            "highlight-493f70e1.css",
            "font.0123456789abcdef0123456789abcdef.woff2",
        ] {
            assert!(has_hash(name), "{name}");
        }
        for name in [
            "index.html",
            "page-3f2a9c1b.html",
            "app.js",
            "jquery-3.7.1.min.js",
            "photo-20240131.jpg",
            "open-graphics.png",
            "screenshot-1920x1080.png",
            "two-elements.css",
            "photo-DSC00123.jpg",
            "case-Pixel7Pro.png",
            ".3f2a9c1b.js",
            "3f2a9c1b",
        ] {
            assert!(!has_hash(name), "{name}");
        }
        assert_eq!(cache_control("feed.rss"), "public, max-age=3600");
        assert_eq!(cache_control("index.html"), "no-cache");
    }
}
