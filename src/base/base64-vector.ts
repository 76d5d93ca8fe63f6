/** Base64 of the values as little-endian float32: the form of OpenAI's embeddings and of the probes in manifests. */
export function encodeVector(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [i, value] of vector.entries()) bytes.writeFloatLE(value, i * 4);
  return bytes.toString('base64');
}

/** The values that `encodeVector` encoded. Does not check the text: bytes after the last whole value are ignored. */
export function decodeVector(text: string): Float32Array {
  const bytes = Buffer.from(text, 'base64');
  return Float32Array.from({ length: Math.floor(bytes.length / 4) }, (_, i) => bytes.readFloatLE(i * 4));
}
