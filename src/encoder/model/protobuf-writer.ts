/**
 * Writes the protocol buffers wire format (https://protobuf.dev/programming-guides/encoding), limited to the field types
 * that ONNX needs. Writes the fields in call order.
 */
export class ProtobufWriter {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The message; concatenate the parts. */
  get parts(): readonly Uint8Array[] {
    return this.#parts;
  }

  /** Writes an int64 field. `value` must be a safe integer. */
  integer(field: number, value: number): this {
    return this.#tag(field, 0).#varint(BigInt.asUintN(64, BigInt(value)));
  }

  float(field: number, value: number): this {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setFloat32(0, value, true);
    return this.#tag(field, 5).#append(bytes);
  }

  string(field: number, value: string): this {
    return this.bytes(field, new TextEncoder().encode(value));
  }

  bytes(field: number, value: Uint8Array): this {
    return this.#tag(field, 2).#varint(BigInt(value.length)).#append(value);
  }

  message(field: number, value: ProtobufWriter): this {
    this.#tag(field, 2).#varint(BigInt(value.length));
    for (const part of value.parts) this.#append(part);
    return this;
  }

  #tag(field: number, wireType: number): this {
    return this.#varint(BigInt(field * 8 + wireType));
  }

  #varint(value: bigint): this {
    const bytes: number[] = [];
    let rest = value;
    for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
    bytes.push(Number(rest));
    return this.#append(Uint8Array.from(bytes));
  }

  #append(part: Uint8Array): this {
    this.#parts.push(part);
    this.#length += part.length;
    return this;
  }
}
