use std::fs;

use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
const UID: &str = "11112222-3333-4444-5555-666677778888";

/// A machine of version 2 with these groups and files.
fn machine(groups: &[&str], files: &[(&str, String)]) -> (tempfile::TempDir, Machine) {
    let root = tempfile::tempdir().unwrap();
    let mount = root.path().join("sys/fs/cgroup");
    fs::create_dir_all(&mount).unwrap();
    fs::write(mount.join("cgroup.controllers"), "cpu\n").unwrap();
    for group in groups {
        fs::create_dir_all(mount.join(group)).unwrap();
    }
    for (path, text) in files {
        let file = root.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let machine = Machine::at(root.path());
    (root, machine)
}

fn found(machine: &Machine, target: &str) -> Result<String, LocateError> {
    locate(machine, &target.parse().unwrap())
}

#[test]
fn units_are_found_in_their_slices() {
    let (_root, machine) = machine(
        &[
            "system.slice/postgresql.service",
            "system.slice/system-web.slice/web@1.service",
            "machine.slice/guest.scope/system.slice/postgresql.service",
            "user.slice/user-1000.slice/app.slice/tool.service",
            "user.slice/user-1001.slice/app.slice/tool.service",
            "shop.slice",
        ],
        &[],
    );
    for (unit, path) in [
        ("postgresql", "/system.slice/postgresql.service"),
        ("postgresql.service", "/system.slice/postgresql.service"),
        ("web@1", "/system.slice/system-web.slice/web@1.service"),
        ("shop.slice", "/shop.slice"),
    ] {
        assert_eq!(found(&machine, &format!("unit:{unit}")).unwrap(), path);
    }
    let error = found(&machine, "unit:nginx").unwrap_err().to_string();
    assert_eq!(
        error,
        "unit nginx is not there: nginx.service has no control group, so it does not run"
    );
    let error = found(&machine, "unit:tool").unwrap_err().to_string();
    assert!(
        error.contains("name one by cgroup:PATH (/user.slice/user-1000.slice"),
        "{error}"
    );
}

#[test]
fn groups_are_found_by_their_paths_and_not_outside_of_the_mount() {
    let (root, machine) = machine(&["shop.slice/web.service"], &[]);
    let mount = root.path().join("sys/fs/cgroup");
    for path in [
        "/shop.slice/web.service",
        "shop.slice/web.service/",
        &format!("{}/shop.slice/web.service", mount.display()),
    ] {
        let path = found(&machine, &format!("cgroup:{path}"));
        assert_eq!(path.unwrap(), "/shop.slice/web.service");
    }
    for path in ["/other", "/shop.slice/../..", "/shop.slice/./web.service"] {
        let error = found(&machine, &format!("cgroup:{path}"));
        assert!(matches!(error, Err(LocateError::Missing { .. })), "{path}");
    }
}

#[test]
fn a_group_of_version_1_may_be_named_with_its_controller() {
    let root = tempfile::tempdir().unwrap();
    let mount = root.path().join("sys/fs/cgroup");
    fs::create_dir_all(mount.join("cpuacct/shop")).unwrap();
    let machine = Machine::at(root.path());
    for path in ["/shop", &format!("{}/cpuacct/shop", mount.display())] {
        assert_eq!(found(&machine, &format!("cgroup:{path}")).unwrap(), "/shop");
    }
}

#[test]
fn containers_are_found_by_id_and_name() {
    let docker = format!("system.slice/docker-{ID}.scope");
    let podman = format!("machine.slice/libpod-{OTHER}.scope/container");
    let conmon = format!("machine.slice/libpod-conmon-{OTHER}.scope");
    let names = format!("[{{\"id\": \"{OTHER}\", \"names\": [\"db\"]}}]");
    let list = "var/lib/containers/storage/overlay-containers/containers.json";
    let config = format!("var/lib/docker/containers/{ID}/config.v2.json");
    let (_root, machine) = machine(
        &[&docker, &podman, &conmon],
        &[
            (list, names),
            (&config, format!("{{\"ID\": \"{ID}\", \"Name\": \"/web\"}}")),
        ],
    );
    for name in ["web", "/web", ID, "0123456789ab"] {
        let path = found(&machine, &format!("container:{name}")).unwrap();
        assert_eq!(path, format!("/{docker}"), "{name}");
    }
    let path = found(&machine, "container:db").unwrap();
    assert_eq!(path, format!("/machine.slice/libpod-{OTHER}.scope"));
    let error = found(&machine, "container:cache").unwrap_err().to_string();
    assert!(error.contains("neither Podman nor Docker runs"), "{error}");
}

#[test]
fn other_layouts_of_containers_are_known() {
    for group in [
        format!("docker/{ID}"),
        format!("kubepods/burstable/pod{UID}/{ID}"),
        format!("kubepods.slice/cri-containerd-{ID}.scope"),
        format!("kubepods.slice/crio-{ID}.scope"),
    ] {
        let (_root, machine) = machine(&[&group, "system.slice/other.service"], &[]);
        let path = found(&machine, &format!("container:{ID}")).unwrap();
        assert_eq!(path, format!("/{group}"));
    }
}

#[test]
fn pods_are_found_by_uid_and_name() {
    let by_systemd = format!(
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice",
        UID.replace('-', "_")
    );
    for group in [by_systemd, format!("kubepods/besteffort/pod{UID}")] {
        let log = format!("var/log/pods/shop_web-0_{UID}/web/0.log");
        let old = "var/log/pods/shop_web-0_00000000-0000-0000-0000-000000000000/web/0.log";
        let files = [(log.as_str(), String::new()), (old, String::new())];
        let (_root, machine) = machine(&[&group], &files);
        for name in [UID, "shop/web-0"] {
            let path = found(&machine, &format!("pod:{name}")).unwrap();
            assert_eq!(path, format!("/{group}"), "{name}");
        }
        let error = found(&machine, "pod:shop/db-0").unwrap_err().to_string();
        assert!(error.contains("/var/log/pods"), "{error}");
        assert!(
            found(&machine, "pod:11112222").is_err(),
            "a part of a UID names no pod"
        );
    }
}

#[test]
fn names_are_also_those_that_a_runtime_serves_on_its_socket() {
    let group = format!("system.slice/docker-{ID}.scope");
    let (root, machine) = machine(&[&group], &[]);
    fs::create_dir_all(root.path().join("run")).unwrap();
    let listener =
        std::os::unix::net::UnixListener::bind(root.path().join("run/docker.sock")).unwrap();
    let server = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};

        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        let content = format!("{{\"Id\": \"{ID}\"}}");
        let length = content.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
        stream
            .write_all(format!("{head}{content}").as_bytes())
            .unwrap();
        String::from_utf8(request).unwrap()
    });
    let path = found(&machine, "container:web").unwrap();
    assert_eq!(path, format!("/{group}"));
    let request = server.join().unwrap();
    assert!(
        request.starts_with("GET /containers/web/json HTTP/1.1\r\n"),
        "{request}"
    );
}
