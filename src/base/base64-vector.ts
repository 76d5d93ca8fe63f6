/** Base64 of the values as little-endian float32: the form of OpenAI's embeddings and of the probes in manifests. */
export function encodeVector(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [i, value] of vector.entries()) bytes.writeFloatLE(value, i * 4);
  return bytes.toString('base64');
}

/** The values that `encodeVector` encoded. Does not check the text: bytes after the last whole value are ignored. */
export function decodeVector(text: string): Float32Array {
  return floatsOf(Buffer.from(text, 'base64'));
}

/** The little-endian float32 values in `bytes`. Ignores bytes after the last whole value. */
export function floatsOf(bytes: Buffer): Float32Array {
  const floats = new Float32Array(Math.floor(bytes.length / 4));
  for (let i = 0; i < floats.length; i++) floats[i] = bytes.readFloatLE(i * 4);
  return floats;
}
