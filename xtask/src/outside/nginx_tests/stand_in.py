#!/usr/bin/env python3
"""Takes nginx's command line: translates the configuration by `plimsoll gateway import`, and runs `plimsoll up` on the result.

PLIMSOLL and REFERENCE name the two programs, NOTES the file for the notes of the translation; nginx takes sockets of a variable `NGINX`. Servers that the configuration itself forwards to stay with nginx: only the front is
under test. What `plimsoll` prints goes to the error log that the command line names.
"""

import os
import re
import signal
import subprocess
import sys
import time

PLIMSOLL, NGINX = os.environ["PLIMSOLL"], os.environ["REFERENCE"]
SIGNALS = {"quit": signal.SIGQUIT, "stop": signal.SIGTERM, "reload": signal.SIGHUP, "reopen": signal.SIGUSR1}


def arguments(words):
    """The options by their letters; those that only print something are nginx's own."""
    if any(word in ("-V", "-v", "-T", "-t", "-h") for word in words):
        os.execvp(NGINX, [NGINX, *words])
    given = {"-p": "/", "-c": "nginx.conf", "-g": "", "-e": "error.log", "-s": None}
    for letter, value in zip(words, words[1:]):
        if letter in given:
            given[letter] = value
    return given


def pid_file(prefix, text, globals_):
    named = re.search(r"(?:^|;|\s)pid\s+(\S+?);", globals_) or re.search(r"^\s*pid\s+(\S+?);", text, re.M)
    return named.group(1) if named else os.path.join(prefix, "nginx.pid")


def servers(text):
    """Start and end of each block `server`."""
    for found in re.finditer(r"\bserver\s*\{", text):
        depth, end = 1, found.end()
        while end < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield found.start(), end


def split(text):
    """The front, and the servers that it forwards to, if there are any."""
    named = set(re.findall(r"(?:_pass\s+(?:https?://|grpcs?://)?|\bserver\s+)127\.0\.0\.1:(\d+)", text)) - {"8080"}
    front = behind = text
    is_split = False
    for start, end in reversed(list(servers(text))):
        ports = set(re.findall(r"listen\s+(?:127\.0\.0\.1:)?(\d+)", text[start:end]))
        if ports and ports <= named:
            front = front[:start] + front[end:]
            is_split = True
        else:
            behind = behind[:start] + behind[end:]
    return (front, behind) if is_split else (text, None)


class StandIn:
    def __init__(self, given):
        self.prefix, self.globals = given["-p"], given["-g"]
        self.conf = os.path.join(self.prefix, given["-c"])
        self.log = open(os.path.join(self.prefix, given["-e"]), "ab", buffering=0)
        self.toml = os.path.join(self.prefix, "plimsoll.toml")
        self.pid_file = pid_file(self.prefix, open(self.conf).read(), self.globals)
        self.behind = None

    def path(self, name):
        return os.path.join(self.prefix, name)

    def translate(self):
        """Writes the translation; false if there is none."""
        front, behind = split(open(self.conf).read())
        source = self.conf
        if behind is not None:
            source = self.path("front.conf")
            open(source, "w").write(front)
            open(self.path("behind.conf"), "w").write(behind)
        done = subprocess.run([PLIMSOLL, "gateway", "import", source], capture_output=True, text=True)
        # The notes of every start and reload of the file.
        with open(os.environ["NOTES"], "a") as notes:
            notes.write(done.stderr)
        if done.returncode:
            self.log.write(b"[emerg] import: " + done.stderr.encode())
            return False
        text = done.stdout
        # The tests end servers at once, and expect that one request follows another one.
        for key, value in (("threads", "1"), ("drain", '"3s"')):
            if not re.search(rf"^{key}\s*=", text, re.M):
                text = f"{key} = {value}\n{text}"
        open(self.toml, "w").write(text)
        return True

    def start_behind(self):
        if not os.path.exists(self.path("behind.conf")):
            return
        own = self.path("behind.pid")
        conf = re.sub(r"^\s*pid\s+\S+?;", f"pid {own};", open(self.path("behind.conf")).read(), flags=re.M)
        open(self.path("behind.conf"), "w").write(conf)
        globals_ = re.sub(r"pid\s+\S+?;", f"pid {own};", self.globals)
        command = [NGINX, "-p", self.prefix, "-c", "behind.conf", "-e", "behind.log"]
        self.behind = subprocess.Popen(command + (["-g", globals_] if globals_ else []), stdout=self.log, stderr=self.log)
        for _ in range(100):
            if os.path.exists(own) or self.behind.poll() is not None:
                break
            time.sleep(0.05)

    def run(self):
        if not self.translate():
            return 1
        self.start_behind()
        listeners = len(re.findall(r"^\[\[listen\]\]", open(self.toml).read(), re.M)) or 1
        up = subprocess.Popen([PLIMSOLL, "up", self.toml], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.prefix, start_new_session=True)

        def forward(number, _frame):
            if number == signal.SIGHUP:
                if self.translate():
                    up.send_signal(signal.SIGHUP)
            elif number == signal.SIGUSR1:
                # Logs are opened anew by the signal that reloads.
                up.send_signal(signal.SIGHUP)
            elif up.poll() is None:
                up.send_signal(signal.SIGTERM)

        for number in [*SIGNALS.values(), signal.SIGINT]:
            signal.signal(number, forward)
        for line in up.stdout:
            self.log.write(line)
            listeners -= line.startswith(b"listening on")
            if listeners == 0 and not os.path.exists(self.pid_file):
                open(self.pid_file + ".new", "w").write(f"{os.getpid()}\n")
                os.rename(self.pid_file + ".new", self.pid_file)
        code = up.wait()
        if self.behind and self.behind.poll() is None:
            self.behind.terminate()
            try:
                self.behind.wait(5)
            except subprocess.TimeoutExpired:
                self.behind.kill()
        if os.path.exists(self.pid_file):
            os.unlink(self.pid_file)
        return min(code, 1) if code >= 0 else 1


def main():
    given = arguments(sys.argv[1:])
    if given["-s"]:
        text = open(os.path.join(given["-p"], given["-c"])).read()
        os.kill(int(open(pid_file(given["-p"], text, given["-g"])).read()), SIGNALS[given["-s"]])
        return 0
    return StandIn(given).run()


sys.exit(main())
