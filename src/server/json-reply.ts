import { TimeSlice } from '../base/time-slice.ts';

/** Pieces are joined up to this length before they are encoded as UTF-8. */
const CHUNK_CHARACTERS = 128 * 1024;

/**
 * Encodes a reply from its pieces of JSON text. A reply to ten thousand queries has tens of megabytes, so this function yields to
 * the event loop. The whole reply is built before any of it is sent, because the headers have its length and timings, and because an
 * error in the last passage must still change the status.
 *
 * @param onBytes called with the size of each chunk; it may throw to stop the writing.
 */
export async function writeReply(
  pieces: Iterable<string>,
  signal: AbortSignal,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  let text = '';
  const slice = new TimeSlice(signal);
  const flush = (): void => {
    const bytes = Buffer.from(text);
    onBytes(bytes.length);
    chunks.push(bytes);
    text = '';
  };
  for (const piece of pieces) {
    text += piece;
    if (text.length < CHUNK_CHARACTERS) continue;
    flush();
    if (slice.isOver) await slice.yield();
  }
  if (text !== '') flush();
  return chunks;
}

export function byteLength(chunks: readonly Buffer[]): number {
  return chunks.reduce((sum, chunk) => sum + chunk.length, 0);
}
