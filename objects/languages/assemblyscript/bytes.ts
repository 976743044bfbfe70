// The bytes of gesmas: what values and keys are encoded as.
//
// docs/abi.md is the page behind it. A class imports gesmas.ts, which exports all of this.
// Invariants: a reader never reads past its bytes, keeps the first thing that does not decode, and
// gives zeros after it. Nothing is ever freed, since each call of a method runs in a fresh instance.
// Not here: types of 128 bits (an array of 16 bytes has the same encoding). Signed numbers have the
// bytes of the unsigned ones that they are cast to.

/** Bytes that belong to nobody. */
export class Bytes {
  constructor(readonly at: usize, readonly length: u32) {}

  /** A text in UTF-8. */
  static of(text: string): Bytes {
    const encoded = String.UTF8.encode(text);
    return new Bytes(changetype<usize>(encoded), <u32>encoded.byteLength);
  }

  byte(index: u32): u8 {
    assert(index < this.length, "an index is out of bounds");
    return load<u8>(this.at + index);
  }

  toString(): string {
    return String.UTF8.decodeUnsafe(this.at, this.length);
  }
}

/** Encoded parts in a row. */
export class Writer {
  private at: usize = 0;
  private length: u32 = 0;
  private capacity: u32 = 0;

  written(): Bytes {
    return new Bytes(this.at, this.length);
  }

  /** Makes room for so many bytes, and counts them as written. */
  private grow(length: u32): usize {
    const end = this.length + length;
    if (end > this.capacity) {
      const capacity = 2 * end + 48;
      const at = heap.alloc(capacity);
      memory.copy(at, this.at, this.length);
      this.at = at;
      this.capacity = capacity;
    }
    const at = this.at + this.length;
    this.length = end;
    return at;
  }

  u8(number: u8): this { store<u8>(this.grow(1), number); return this; }
  u16(number: u16): this { store<u16>(this.grow(2), number); return this; }
  u32(number: u32): this { store<u32>(this.grow(4), number); return this; }
  u64(number: u64): this { store<u64>(this.grow(8), number); return this; }
  bool(flag: bool): this { return this.u8(flag ? 1 : 0); }

  /** Bytes that take the rest; an array of bytes. */
  rest(bytes: Bytes): this {
    memory.copy(this.grow(bytes.length), bytes.at, bytes.length);
    return this;
  }

  /** Bytes, led by their length. */
  bytes(bytes: Bytes): this { return this.u32(bytes.length).rest(bytes); }
  /** A text, led by its length. */
  text(text: string): this { return this.bytes(Bytes.of(text)); }

  // Keys of maps and sets sort as their bytes do; parts of a tuple follow each other.

  keyU32(key: u32): this { return this.u32(bswap<u32>(key)); }
  keyU64(key: u64): this { return this.u64(bswap<u64>(key)); }
  keyI64(key: i64): this { return this.keyU64(<u64>key ^ (1 << 63)); }

  keyBytes(key: Bytes): this {
    for (let index: u32 = 0; index < key.length; index++) {
      const byte = key.byte(index);
      this.u8(byte);
      if (byte == 0) this.u8(0xff);
    }
    return this.u16(0);
  }

  keyText(key: string): this { return this.keyBytes(Bytes.of(key)); }
}

/** Encoded bytes that have not been taken yet. */
export class Reader {
  /** Why they do not decode. */
  malformed: string | null = null;

  constructor(private at: usize, private left: u32) {}

  static of(bytes: Bytes): Reader {
    return new Reader(bytes.at, bytes.length);
  }

  private refuse(why: string): void {
    if (this.malformed == null) this.malformed = why;
    this.left = 0;
  }

  /** Takes so many bytes as they are: an array of bytes. */
  take(length: u32): Bytes {
    if (this.malformed != null || this.left < length) {
      this.refuse("it ends too early");
      return new Bytes(0, 0);
    }
    const taken = new Bytes(this.at, length);
    this.at += length;
    this.left -= length;
    return taken;
  }

  private number<T>(): T {
    const taken = this.take(sizeof<T>());
    return taken.length > 0 ? load<T>(taken.at) : <T>0;
  }

  u8(): u8 { return this.number<u8>(); }
  u16(): u16 { return this.number<u16>(); }
  u32(): u32 { return this.number<u32>(); }
  u64(): u64 { return this.number<u64>(); }

  bool(): bool {
    const flag = this.u8();
    if (flag > 1) this.refuse("a flag is neither 0 nor 1");
    return flag == 1;
  }

  /** Bytes led by their length. */
  bytes(): Bytes { return this.take(this.u32()); }

  /** A text led by its length. */
  text(): string {
    const text = this.bytes();
    for (let index: u32 = 0; index < text.length; ) {
      const length = character(text.at + index, text.length - index);
      if (length == 0) {
        this.refuse("a text is not UTF-8");
        return "";
      }
      index += length;
    }
    return text.toString();
  }

  // Keys of maps and sets, of the bytes of an entry.

  keyU32(): u32 { return bswap<u32>(this.u32()); }
  keyU64(): u64 { return bswap<u64>(this.u64()); }
  keyI64(): i64 { return <i64>(this.keyU64() ^ (1 << 63)); }

  keyBytes(): Bytes {
    const bytes = new Writer();
    while (true) {
      const byte = this.u8();
      const next = byte == 0 ? this.u8() : 0;
      if (byte == 0 && next == 0) return bytes.written();
      if (byte == 0 && next != 0xff) this.refuse("a zero byte in a key is not escaped");
      bytes.u8(byte);
    }
  }

  keyText(): string { return this.keyBytes().toString(); }

  /** A count of items of which each takes `least` bytes or more. */
  count(least: u32): u32 {
    const count = this.u32();
    if (<u64>count * least <= this.left) return count;
    this.refuse("a count is greater than the input can hold");
    return 0;
  }

  rest(): Bytes { return this.take(this.left); }

  end(): void {
    if (this.left > 0) this.refuse("bytes follow after its end");
  }
}

/** How many bytes the first character of UTF-8 has; zero if there is none. */
function character(at: usize, left: u32): u32 {
  const lead = load<u8>(at);
  if (lead < 0x80) return 1;
  const length: u32 = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || left < length) return 0;
  for (let index: u32 = 1; index < length; index++) {
    if ((load<u8>(at + index) & 0xc0) != 0x80) return 0;
  }
  // What has a shorter form, surrogates, and what is beyond the last character.
  const second = load<u8>(at, 1);
  const wrong = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
    (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return wrong ? 0 : length;
}
