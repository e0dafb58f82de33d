//! `CONNECT` of SOCKS 4, 4a (openssh.com's notes) and 5 (RFC 1928, RFC 1929).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Plan, ProxyRequest, Stream, dial, relay};

pub(super) async fn serve(
    mut client: impl Stream,
    plan: &Plan,
    note: impl Fn(ProxyRequest),
) -> io::Result<()> {
    match client.read_u8().await? {
        4 => version_4(client, plan, note).await,
        5 => version_5(client, plan, note).await,
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

async fn version_4(
    mut client: impl Stream,
    plan: &Plan,
    note: impl Fn(ProxyRequest),
) -> io::Result<()> {
    let _command = client.read_u8().await?;
    let port = client.read_u16().await?;
    let address = Ipv4Addr::from(client.read_u32().await?);
    let user = read_until_nul(&mut client).await?;
    // 0.0.0.x stands for "a name follows" (SOCKS 4a).
    let host = match address.octets() {
        [0, 0, 0, last] if last != 0 => read_until_nul(&mut client).await?,
        _ => address.to_string(),
    };
    note(ProxyRequest {
        how: "SOCKS4".to_owned(),
        target: format!("{host}:{port}"),
        credentials: (!user.is_empty()).then(|| user.clone()),
    });
    let admitted = plan
        .credentials
        .as_ref()
        .is_none_or(|(wanted, _)| *wanted == user);
    let origin = if admitted {
        dial(&host, port).await.ok()
    } else {
        None
    };
    let Some(origin) = origin else {
        return client.write_all(&[0, 91, 0, 0, 0, 0, 0, 0]).await;
    };
    client.write_all(&[0, 90, 0, 0, 0, 0, 0, 0]).await?;
    relay(client, origin).await
}

async fn version_5(
    mut client: impl Stream,
    plan: &Plan,
    note: impl Fn(ProxyRequest),
) -> io::Result<()> {
    let mut methods = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut methods).await?;
    let mut credentials = None;
    match &plan.credentials {
        None => client.write_all(&[5, 0]).await?,
        Some(_) if !methods.contains(&2) => return client.write_all(&[5, 0xff]).await,
        Some((user, password)) => {
            client.write_all(&[5, 2]).await?;
            let _version = client.read_u8().await?;
            let given_user = read_counted(&mut client).await?;
            let given_password = read_counted(&mut client).await?;
            let admitted = (&given_user, &given_password) == (user, password);
            credentials = Some(format!("{given_user}:{given_password}"));
            client.write_all(&[1, u8::from(!admitted)]).await?;
            if !admitted {
                return client.shutdown().await;
            }
        }
    }
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    let host = match request[3] {
        1 => Ipv4Addr::from(client.read_u32().await?).to_string(),
        3 => read_counted(&mut client).await?,
        4 => format!("[{}]", Ipv6Addr::from(client.read_u128().await?)),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let port = client.read_u16().await?;
    note(ProxyRequest {
        how: "SOCKS5".to_owned(),
        target: format!("{host}:{port}"),
        credentials,
    });
    let Ok(origin) = dial(&host, port).await else {
        return client.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).await;
    };
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    relay(client, origin).await
}

async fn read_counted(client: &mut impl Stream) -> io::Result<String> {
    let mut bytes = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn read_until_nul(client: &mut impl Stream) -> io::Result<String> {
    let mut bytes = Vec::new();
    while bytes.len() < 512 {
        match client.read_u8().await? {
            0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            byte => bytes.push(byte),
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}
