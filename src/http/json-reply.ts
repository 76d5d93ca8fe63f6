import { setImmediate as nextTurn } from 'node:timers/promises';
import { TrawlError } from '../errors.ts';

/** Characters put together before they become bytes. */
const SLICE_CHARACTERS = 128 * 1024;
/** How long writing may hold the event loop before others get their turn, in milliseconds. */
const TURN_MS = 2;

/**
 * The bytes of a reply from its pieces of JSON text. A reply for ten thousand queries is tens of megabytes: it is written
 * in slices with turns of the event loop between them. It is kept whole until it is sent, because its length and the time
 * it took go into the headers, and because a fault in the last passage must still be able to become an error.
 */
export async function writeReply(pieces: Iterable<string>, signal: AbortSignal): Promise<Buffer[]> {
  const slices: Buffer[] = [];
  let text = '';
  let turnStart = performance.now();
  for (const piece of pieces) {
    text += piece;
    if (text.length < SLICE_CHARACTERS) continue;
    slices.push(Buffer.from(text));
    text = '';
    if (performance.now() - turnStart < TURN_MS) continue;
    await nextTurn();
    if (signal.aborted) throw new TrawlError('CANCELLED', 'The client hung up before its answer was written.');
    turnStart = performance.now();
  }
  if (text !== '') slices.push(Buffer.from(text));
  return slices;
}

export function byteLength(slices: readonly Buffer[]): number {
  return slices.reduce((sum, slice) => sum + slice.length, 0);
}
