export interface TensorToWrite {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** A safetensors file with the tensors in the given order. `change` edits the header before it is written. */
export function encodeSafetensors(
  tensors: Readonly<Record<string, TensorToWrite>>,
  change: (header: Record<string, unknown>) => void = () => {},
): Buffer {
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
  let at = 0;
  for (const [name, { dtype, shape, bytes }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [at, at + bytes.length] };
    at += bytes.length;
  }
  change(header);
  return withHeader(JSON.stringify(header), Buffer.concat(Object.values(tensors).map((tensor) => tensor.bytes)));
}

export function withHeader(header: string, data: Uint8Array, claimedLength?: bigint): Buffer {
  const text = Buffer.from(header);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(claimedLength ?? BigInt(text.length));
  return Buffer.concat([length, text, data]);
}

export function float32Bytes(values: ArrayLike<number>): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer);
}
