import { EventLoopTurn } from './event-loop-turn.ts';

/** Characters put together before they become bytes. */
const SLICE_CHARACTERS = 128 * 1024;

/**
 * The bytes of a reply from its pieces of JSON text. A reply for ten thousand queries is tens of megabytes: it is written
 * in slices with turns of the event loop between them. It is kept whole until it is sent, because its length and the time
 * it took go into the headers, and because a fault in the last passage must still be able to become an error.
 *
 * `onBytes` is told of each slice as it comes to be, and may throw to end the writing.
 */
export async function writeReply(
  pieces: Iterable<string>,
  signal: AbortSignal,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<Buffer[]> {
  const slices: Buffer[] = [];
  let text = '';
  const turn = new EventLoopTurn(signal);
  const slice = (): void => {
    const bytes = Buffer.from(text);
    onBytes(bytes.length);
    slices.push(bytes);
    text = '';
  };
  for (const piece of pieces) {
    text += piece;
    if (text.length < SLICE_CHARACTERS) continue;
    slice();
    if (turn.isOver) await turn.next();
  }
  if (text !== '') slice();
  return slices;
}

export function byteLength(slices: readonly Buffer[]): number {
  return slices.reduce((sum, slice) => sum + slice.length, 0);
}
