//! The global `crypto`.

use crate::fixture::{check, run_script};

/// Runs the body of an asynchronous function with helpers for bytes.
fn check_crypto(body: &str, expected: &[&str]) {
    let text = format!(
        "import {{ hexEncode as hex }} from 'k6/crypto'; import encoding from 'k6/encoding'; const subtle = crypto.subtle, bytes = (text) => new TextEncoder().encode(text), text = (data) => new TextDecoder().decode(data);
         const fails = async (promise) => {{ try {{ await promise; console.log('no error'); }} catch (error) {{ console.log(`${{error.name}}: ${{error.message}}`); }} }};
         export default async function () {{ {body} }}"
    );
    let ran = run_script(&text, "");
    let expected: Vec<_> = expected
        .iter()
        .map(|line| format!("Info: {line}"))
        .collect();
    assert_eq!(ran.log, expected, "{body}");
}

#[test]
fn web_crypto_hashes_signs_and_derives() {
    check_crypto(
        "console.log(hex(await subtle.digest('SHA-256', bytes('abc'))));
         console.log(hex(await subtle.digest({ name: 'sha-1' }, bytes('abc').buffer)));
         const key = await subtle.importKey('raw', bytes('Jefe'), { name: 'HMAC', hash: 'SHA-256' }, true, ['sign', 'verify']);
         const signed = await subtle.sign('HMAC', key, bytes('what do ya want for nothing?'));
         console.log(hex(signed), await subtle.verify('HMAC', key, signed, bytes('what do ya want for nothing?')), await subtle.verify('HMAC', key, signed, bytes('x')));
         console.log(JSON.stringify(await subtle.exportKey('jwk', key)), JSON.stringify(key.algorithm), key.type);
         const password = await subtle.importKey('raw', bytes('password'), 'PBKDF2', false, ['deriveBits', 'deriveKey']);
         console.log(hex(await subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-1', salt: bytes('salt'), iterations: 4096 }, password, 160)));
         const made = await subtle.deriveKey({ name: 'PBKDF2', hash: 'SHA-256', salt: bytes('salt'), iterations: 1 }, password, { name: 'AES-GCM', length: 256 }, true, ['encrypt']);
         console.log(hex(await subtle.exportKey('raw', made)));",
        &[
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "a9993e364706816aba3e25717850c26c9cd0d89d",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843 true false",
            "{\"kty\":\"oct\",\"k\":\"SmVmZQ\",\"alg\":\"HS256\",\"ext\":true,\"key_ops\":[\"sign\",\"verify\"]} {\"name\":\"HMAC\",\"hash\":{\"name\":\"SHA-256\"},\"length\":32} secret",
            "4b007901b765489abead49d926f721d065a429c1",
            "120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b",
        ],
    );
}

#[test]
fn web_crypto_wraps_keys_and_derives_by_hkdf() {
    check_crypto(
        "const by = await subtle.generateKey({ name: 'AES-GCM', length: 192 }, true, ['wrapKey', 'unwrapKey']);
         const how = { name: 'AES-GCM', iv: new Uint8Array(16), tagLength: 96 };
         const key = await subtle.importKey('raw', bytes('0123456789abcdef'), 'AES-CBC', true, ['encrypt', 'decrypt']);
         for (const format of ['raw', 'jwk']) {
           const wrapped = await subtle.wrapKey(format, key, by, how);
           const again = await subtle.unwrapKey(format, wrapped, by, how, 'AES-CBC', true, ['encrypt']);
           console.log(format, text(await subtle.exportKey('raw', again)), again.usages.join());
         }
         await fails(subtle.encrypt(how, by, bytes('x')));
         await fails(subtle.wrapKey('raw', by, key, { name: 'AES-CBC', iv: new Uint8Array(16) }));
         const secret = await subtle.importKey('raw', new Uint8Array(22).fill(11), 'HKDF', false, ['deriveBits', 'deriveKey']);
         const salt = new Uint8Array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]), info = new Uint8Array([240, 241, 242, 243, 244, 245, 246, 247, 248, 249]);
         console.log(hex(await subtle.deriveBits({ name: 'HKDF', hash: 'SHA-256', salt, info }, secret, 336)));",
        &[
            "raw 0123456789abcdef encrypt",
            "jwk 0123456789abcdef encrypt",
            "InvalidAccessError: the usages of the key are wrapKey, unwrapKey, without encrypt",
            "InvalidAccessError: the usages of the key are encrypt, decrypt, without wrapKey",
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        ],
    );
}

#[test]
fn web_crypto_encrypts_and_keeps_keys_to_their_usages() {
    check_crypto(
        "for (const [name, more] of [['AES-CBC', { iv: new Uint8Array(16) }], ['AES-CTR', { counter: new Uint8Array(16), length: 64 }], ['AES-GCM', { iv: new Uint8Array(12), additionalData: bytes('a') }]]) {
           const key = await subtle.generateKey({ name, length: 256 }, true, ['encrypt', 'decrypt']);
           const sealed = await subtle.encrypt({ name, ...more }, key, bytes('secret text'));
           console.log(name, sealed.byteLength, text(await subtle.decrypt({ name, ...more }, key, sealed)));
           const again = await subtle.importKey('jwk', await subtle.exportKey('jwk', key), { name }, false, ['decrypt']);
           console.log(text(await subtle.decrypt({ name, ...more }, again, sealed)));
           await fails(subtle.encrypt({ name, ...more }, again, bytes('x')));
           await fails(subtle.exportKey('raw', again));
         }
         const pair = await subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-384' }, true, ['sign', 'verify']);
         const how = { name: 'ECDSA', hash: 'SHA-384' };
         const signed = await subtle.sign(how, pair.privateKey, bytes('x'));
         const open = await subtle.importKey('spki', await subtle.exportKey('spki', pair.publicKey), { name: 'ECDSA', namedCurve: 'P-384' }, true, ['verify']);
         console.log(signed.byteLength, await subtle.verify(how, open, signed, bytes('x')), await subtle.verify(how, open, signed, bytes('y')));
         await fails(subtle.sign(how, open, bytes('x')));
         await fails(subtle.generateKey({ name: 'HKDF' }, true, ['deriveKey']));
         await fails(subtle.generateKey({ name: 'X25519' }, true, ['deriveKey']));
         await fails(subtle.digest('MD5', bytes('x')));
         await fails(subtle.importKey('raw', bytes('short'), 'AES-CBC', true, ['encrypt']));",
        &[
            "AES-CBC 16 secret text",
            "secret text",
            "InvalidAccessError: the usages of the key are decrypt, without encrypt",
            "InvalidAccessError: the key is not extractable",
            "AES-CTR 11 secret text",
            "secret text",
            "InvalidAccessError: the usages of the key are decrypt, without encrypt",
            "InvalidAccessError: the key is not extractable",
            "AES-GCM 27 secret text",
            "secret text",
            "InvalidAccessError: the usages of the key are decrypt, without encrypt",
            "InvalidAccessError: the key is not extractable",
            "96 true false",
            "InvalidAccessError: the usages of the key are verify, without sign",
            "NotSupportedError: keys of HKDF are imported, not generated",
            "NotSupportedError: X25519 is not supported by plimsoll, which has AES-CBC, AES-CTR, AES-GCM, HMAC, PBKDF2, HKDF, ECDSA, ECDH, RSASSA-PKCS1-v1_5, RSA-PSS, RSA-OAEP",
            "NotSupportedError: no hash MD5; known are SHA-1, SHA-256, SHA-384, SHA-512",
            "DataError: a key of AES has 128, 192 or 256 bits, not 40",
        ],
    );
}

/// A key that was made for this test, as PKCS #8 and as a JSON Web Key; its public half; and OpenSSL's signature of `x`.
const RSA_PRIVATE: &str = "MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDCuPzyM1vPy6K5yaVT010cWZALmGO4V69reCF0QRy/GKm/3uSig6+wXs4eyREItFFF3bPvwfUzmGVviLvc239GXL4DKpwiFK9CsR08Q9MsrBEMbvyaDbeFoZW4nvOxrwh1zP/3TI9Qx+5YMBEopn3hOGozoAKVSmEW5jesTV4FwkNVqzkaeA0jvdfmRvjEn6/VBXU5PqdWNLj5smoL2/9ql/7LRERV2aK+zEDurf0g0AYZ4nvi+SGf+E97lRagzJDjjAkq4bSGWbzr2dJ/YUzwwHxB1iWv9aRxJJgtkm4ul7adAqkNkQ1fq3L82CL3TnGn8E2kADlap6YhqkSMxie9AgMBAAECggEAWfPhDfYBzM1yf8cSM9YpZkZNj723G1qOc+QL+Et3/yNij3tlPVn+GEjDiV8zGkVKYi8Xx4NfRZV6Dnso5c8UTancMVRGykup5vIw4j0m2bUnLwo6cOQzSm0p4B61zvhfvSOVf2WDszqY9W5HDvNSpW9NSEn7x4GTtmNlhpg6/gc/HNvxUvZ5xEwGWyCaZFeQKWGQXVsbWwGqCSwXLhKJrN6LoWJ8RhH65zO/jdWJqbBQHHX6m2kWwA6VZQjonEzqx2r9a4GOAXiQ9sYBVBcPBk17HbhQgAkVig6QiXaQA5fp0NuuAawXI3LluAuurzzYPfXqJJU/rRDukMreuib+tQKBgQD7arAjAMV3NTQQ4r7tSA8Fp+gXE+0/Uk06kLKgXeAx+T+CIkdx6EaQQO+Kq1UM4zZax/0U5PMtWfJlUOM03tYm7OoxZB8MfWc7MCybtyqTeCxlrv7wVslwu054wG884HVE+xUnXl/rhjfRPdpCFB08aQdtepvV6tpHbyJoiwqJswKBgQDGRbhCJ/BblICbE3iTJM+bCnCRFZYPwskrvS0Brl/9PXV4IweL/qpxwN55C+SzVNh0lC42/mXb1+rCXlLTE5uFiPZPOBo4dc198SjyeaOVcjcljjyvUhLDE9sW+o1CJdwuVabtTpvUUmdI719eL78rMYOqwkui083Yt5vlMrPwzwKBgQCmHCMrvUK6NCimT2meFFH4hqtNNBk4EQR9gUTDt8J8whU3wbY6iCC3BnA9yl1zGlu7Nw77UxloCVmhnwO+1svfBADniSMKeYBPFtEiQK6cqHWM6UX/PRfyp459MYdNTW+tl8auMChn0FHoqVke93MpiqshpjR37acyMzcko1jfCQKBgHhP5jd+tMNdoYx4jDn9pFyYQSZIyv5VXG1GJgFXJrgsixOTbgjtR9AvENCy/twzKAXVxRVp2bVFmBbJ1chvpXeqXIxFpuOL2F4L8KTyWulcnUoUvY5FZ00ox1FySDVTdABJyTlG8hgsyK/hUSV+I6q6KQN9UxhDHi3bfKXf1oDRAoGBAK0hmI99PZFuPtTDibwRt3VjTttOMfVL3xdeYpE5sTH/48GNgOCARkNUzTg65dvvqkXE8PdTfYrLIhmronOgZStl9bFuCgBBB5QjcX1VyagXtiypjE4w3o/6w4xyNTRtlyuic4jXnNig6TBB1XHvyo02Q0Ctn+jbC3T2xvyWizT0";
const RSA_JWK: &str = r#"{"kty": "RSA", "e": "AQAB", "n": "wrj88jNbz8uiucmlU9NdHFmQC5hjuFeva3ghdEEcvxipv97kooOvsF7OHskRCLRRRd2z78H1M5hlb4i73Nt_Rly-AyqcIhSvQrEdPEPTLKwRDG78mg23haGVuJ7zsa8Idcz_90yPUMfuWDARKKZ94ThqM6AClUphFuY3rE1eBcJDVas5GngNI73X5kb4xJ-v1QV1OT6nVjS4-bJqC9v_apf-y0REVdmivsxA7q39INAGGeJ74vkhn_hPe5UWoMyQ44wJKuG0hlm869nSf2FM8MB8QdYlr_WkcSSYLZJuLpe2nQKpDZENX6ty_Ngi905xp_BNpAA5WqemIapEjMYnvQ", "d": "WfPhDfYBzM1yf8cSM9YpZkZNj723G1qOc-QL-Et3_yNij3tlPVn-GEjDiV8zGkVKYi8Xx4NfRZV6Dnso5c8UTancMVRGykup5vIw4j0m2bUnLwo6cOQzSm0p4B61zvhfvSOVf2WDszqY9W5HDvNSpW9NSEn7x4GTtmNlhpg6_gc_HNvxUvZ5xEwGWyCaZFeQKWGQXVsbWwGqCSwXLhKJrN6LoWJ8RhH65zO_jdWJqbBQHHX6m2kWwA6VZQjonEzqx2r9a4GOAXiQ9sYBVBcPBk17HbhQgAkVig6QiXaQA5fp0NuuAawXI3LluAuurzzYPfXqJJU_rRDukMreuib-tQ", "p": "-2qwIwDFdzU0EOK-7UgPBafoFxPtP1JNOpCyoF3gMfk_giJHcehGkEDviqtVDOM2Wsf9FOTzLVnyZVDjNN7WJuzqMWQfDH1nOzAsm7cqk3gsZa7-8FbJcLtOeMBvPOB1RPsVJ15f64Y30T3aQhQdPGkHbXqb1eraR28iaIsKibM", "q": "xkW4QifwW5SAmxN4kyTPmwpwkRWWD8LJK70tAa5f_T11eCMHi_6qccDeeQvks1TYdJQuNv5l29fqwl5S0xObhYj2TzgaOHXNffEo8nmjlXI3JY48r1ISwxPbFvqNQiXcLlWm7U6b1FJnSO9fXi-_KzGDqsJLotPN2Leb5TKz8M8", "dp": "phwjK71CujQopk9pnhRR-IarTTQZOBEEfYFEw7fCfMIVN8G2OoggtwZwPcpdcxpbuzcO-1MZaAlZoZ8DvtbL3wQA54kjCnmATxbRIkCunKh1jOlF_z0X8qeOfTGHTU1vrZfGrjAoZ9BR6KlZHvdzKYqrIaY0d-2nMjM3JKNY3wk", "dq": "eE_mN360w12hjHiMOf2kXJhBJkjK_lVcbUYmAVcmuCyLE5NuCO1H0C8Q0LL-3DMoBdXFFWnZtUWYFsnVyG-ld6pcjEWm44vYXgvwpPJa6VydShS9jkVnTSjHUXJINVN0AEnJOUbyGCzIr-FRJX4jqropA31TGEMeLdt8pd_WgNE", "qi": "rSGYj309kW4-1MOJvBG3dWNO204x9UvfF15ikTmxMf_jwY2A4IBGQ1TNODrl2--qRcTw91N9issiGauic6BlK2X1sW4KAEEHlCNxfVXJqBe2LKmMTjDej_rDjHI1NG2XK6JziNec2KDpMEHVce_KjTZDQK2f6NsLdPbG_JaLNPQ"}"#;
const RSA_PUBLIC: &str = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwrj88jNbz8uiucmlU9NdHFmQC5hjuFeva3ghdEEcvxipv97kooOvsF7OHskRCLRRRd2z78H1M5hlb4i73Nt/Rly+AyqcIhSvQrEdPEPTLKwRDG78mg23haGVuJ7zsa8Idcz/90yPUMfuWDARKKZ94ThqM6AClUphFuY3rE1eBcJDVas5GngNI73X5kb4xJ+v1QV1OT6nVjS4+bJqC9v/apf+y0REVdmivsxA7q39INAGGeJ74vkhn/hPe5UWoMyQ44wJKuG0hlm869nSf2FM8MB8QdYlr/WkcSSYLZJuLpe2nQKpDZENX6ty/Ngi905xp/BNpAA5WqemIapEjMYnvQIDAQAB";
const RSA_SIGNED: &str = "33ce55e80b24c56fccbc135963863e996ade738f922402421044b7c151588fa7d98b381904c5469f861775f350fd20e6c9c27b6959c8c3c7817e87327ab94461e976ab75462c4829ee286bede363e78e6df394c355983c15f5f75a329821e19c322abc4bc18b3f44369db6ea0c0296bca2b9b8b1baa63b0d9e30ed13dc568b18261c8bfbf8cc85d64592256b217e78ec886e5c773118bebec75cca8914212457eba2918cd6627d027020d0378c71607995ea069c9d6f20751d54e46d2bf307011dc512c98732e1ac8eaf8aff848ca39d1814a4fdde25606d7b958e353c736a946c4bafc4b1bcf7fd246e269c132ed754382634de5b74dd69e0c61f412750a438";

#[test]
fn web_crypto_signs_by_rsa_and_takes_json_web_keys() {
    let text = "
         const pkcs8 = encoding.b64decode('PRIVATE'), spki = encoding.b64decode('PUBLIC'), jwk = JWK;
         for (const name of ['RSASSA-PKCS1-v1_5', 'RSA-PSS']) {
           const how = { name, hash: 'SHA-256', saltLength: 32 };
           const open = await subtle.importKey('spki', spki, how, true, ['verify']);
           for (const key of [await subtle.importKey('pkcs8', pkcs8, how, true, ['sign']), await subtle.importKey('jwk', jwk, how, true, ['sign'])]) {
             const signed = await subtle.sign(how, key, bytes('x'));
             if (name !== 'RSA-PSS') console.log(hex(signed));
             console.log(signed.byteLength, key.algorithm.modulusLength, await subtle.verify(how, open, signed, bytes('x')), await subtle.verify(how, open, signed, bytes('y')));
           }
           const again = await subtle.exportKey('jwk', open);
           console.log(again.n === jwk.n, again.e, again.alg, hex(await subtle.exportKey('spki', open)) === hex(spki));
         }
         await fails(subtle.importKey('pkcs8', bytes('x'), { name: 'RSA-PSS', hash: 'SHA-256' }, true, ['sign']));
         await fails(subtle.importKey('spki', bytes('x'), { name: 'RSA-PSS', hash: 'SHA-256' }, true, ['verify']));
         for (const namedCurve of ['P-256', 'P-384', 'P-521']) {
           const algorithm = { name: 'ECDSA', namedCurve }, how = { name: 'ECDSA', hash: 'SHA-512' };
           const pair = await subtle.generateKey(algorithm, true, ['sign', 'verify']);
           const own = await subtle.importKey('jwk', await subtle.exportKey('jwk', pair.privateKey), algorithm, true, ['sign']);
           const open = await subtle.importKey('jwk', await subtle.exportKey('jwk', pair.publicKey), algorithm, true, ['verify']);
           console.log(await subtle.verify(how, open, await subtle.sign(how, own, bytes('x')), bytes('x')));
         }";
    let text = text
        .replace("PRIVATE", RSA_PRIVATE)
        .replace("PUBLIC", RSA_PUBLIC)
        .replace("JWK;", &format!("{RSA_JWK};"));
    check_crypto(
        &text,
        &[
            RSA_SIGNED,
            "256 2048 true false",
            RSA_SIGNED,
            "256 2048 true false",
            "true AQAB RS256 true",
            "256 2048 true false",
            "256 2048 true false",
            "true AQAB PS256 true",
            "DataError: the key is no PKCS #8 document of RSA with up to 4096 bits",
            "DataError: the key is no valid DER of RSA",
            "true",
            "true",
            "true",
        ],
    );
}

#[test]
fn web_crypto_generates_keys_of_rsa_and_encrypts_by_oaep() {
    check_crypto(
        "const how = { name: 'RSA-OAEP', modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-1' };
         const pair = await subtle.generateKey(how, true, ['encrypt', 'decrypt']);
         console.log(pair.privateKey.type, pair.privateKey.usages, pair.publicKey.usages, pair.publicKey.algorithm.modulusLength);
         const jwk = await subtle.exportKey('jwk', pair.privateKey);
         console.log(Object.keys(jwk).join(), jwk.alg, jwk.e);
         const own = await subtle.importKey('jwk', jwk, how, true, ['decrypt']);
         const open = await subtle.importKey('spki', await subtle.exportKey('spki', pair.publicKey), how, true, ['encrypt']);
         for (const label of [undefined, bytes('label')]) {
           const sealed = await subtle.encrypt({ ...how, label }, open, bytes('secret text'));
           console.log(sealed.byteLength, text(await subtle.decrypt({ ...how, label }, own, sealed)));
           await fails(subtle.decrypt({ ...how, label: bytes('other') }, own, sealed));
         }
         await fails(subtle.encrypt(how, open, new Uint8Array(200)));
         await fails(subtle.generateKey({ ...how, modulusLength: 64 }, true, ['encrypt', 'decrypt']));
         for (const name of ['RSASSA-PKCS1-v1_5', 'RSA-PSS']) for (const hash of ['SHA-1', 'SHA-256']) {
           const sign = await subtle.importKey('pkcs8', await subtle.exportKey('pkcs8', pair.privateKey), { name, hash }, true, ['sign']);
           const verify = await subtle.importKey('spki', await subtle.exportKey('spki', pair.publicKey), { name, hash }, true, ['verify']);
           const given = { name, saltLength: 8 };
           const signed = await subtle.sign(given, sign, bytes('x'));
           console.log(name, hash, await subtle.verify(given, verify, signed, bytes('x')), await subtle.verify(given, verify, signed, bytes('y')));
         }",
        &[
            "private [ \"decrypt\" ] [ \"encrypt\" ] 1024",
            "kty,n,e,d,p,q,dp,dq,qi,alg,ext,key_ops RSA-OAEP AQAB",
            "128 secret text",
            "OperationError: decryption failed",
            "128 secret text",
            "OperationError: decryption failed",
            "OperationError: encryption failed: the data is too long for the key",
            "OperationError: keys of RSA are generated with 1024 to 4096 bits",
            "RSASSA-PKCS1-v1_5 SHA-1 true false",
            "RSASSA-PKCS1-v1_5 SHA-256 true false",
            "RSA-PSS SHA-1 true false",
            "RSA-PSS SHA-256 true false",
        ],
    );
}

#[test]
fn random_values_are_of_whole_numbers() {
    check(
        "",
        "const filled = crypto.getRandomValues(new Uint32Array(64)); console.log(new Set(filled).size > 60);
         for (const view of [new Float32Array(1), new Uint8Array(65537)]) { try { crypto.getRandomValues(view); } catch (error) { console.log(error.name); } }",
        "",
        &["true", "TypeMismatchError", "QuotaExceededError"],
    );
}
