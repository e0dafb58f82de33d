const native = globalThis[Symbol.for("plimsoll.native")].of("files");

export const SeekMode = Object.freeze({ Start: 0, Current: 1, End: 2 });

class File {
  #id;
  #length;
  #at = 0;
  constructor(path) {
    this.path = path;
    [this.#id, this.#length] = native.openFile(path);
  }
  static idOf(file) {
    if (!(file instanceof File)) throw new TypeError("expected a File of k6/experimental/fs");
    return file.#id;
  }
  async stat() {
    return { name: this.path.split("/").at(-1), size: this.#length };
  }
  async read(into) {
    if (!(into instanceof Uint8Array)) throw new TypeError("read() takes a Uint8Array");
    if (into.length === 0) return 0;
    if (this.#at >= this.#length) return null;
    const bytes = new Uint8Array(native.readFile(this.#id, this.#at, into.length));
    into.set(bytes);
    this.#at += bytes.length;
    return bytes.length;
  }
  async seek(offset, whence) {
    if (!Number.isInteger(offset)) throw new TypeError("seek() takes a whole number");
    const from = { [SeekMode.Start]: 0, [SeekMode.Current]: this.#at, [SeekMode.End]: this.#length }[whence];
    if (from === undefined) throw new TypeError("seek() takes a SeekMode");
    const at = from + offset;
    if (at < 0 || at > this.#length) throw new Error("cannot seek beyond the file");
    this.#at = at;
    return at;
  }
}

export async function open(path) {
  native.requireInit("open() of k6/experimental/fs");
  return new File(String(path));
}

// For k6/experimental/csv.
native.idOfFile ??= File.idOf;

export default { open, SeekMode };
