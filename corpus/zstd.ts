import { ZSTDDecoder } from 'zstddec/stream';

import { DamagedDataError } from './compression.ts';

/** Bytes handed to the decoder at once. */
const PIECE_BYTES = 1024;

/** The smallest frame has 8 bytes, so a sound piece gives nothing at most so often in a row; some more for its edges. */
const MAX_IDLE_STEPS = PIECE_BYTES / 8 + 32;

/**
 * Unpacks zstd (RFC 8878): frames one after the other, skippable ones among them, checksums compared where a frame has
 * one. Memory is the frame's window, at most 128 MiB as in the `zstd` program without options. The decoder is the
 * reference implementation compiled to WebAssembly.
 *
 * @throws DamagedDataError for data that is damaged, cut off, or followed by something else.
 */
export async function* unzstd(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  const decoder = new ZSTDDecoder();
  await decoder.init();
  let pieces: Buffer[] = [];
  let idleSteps = 0;
  // The decoder asks for one piece a step at most, so it is enough that one lies ready.
  const steps = decoder.decodeStreaming(
    (function* () {
      for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
        idleSteps = 0;
        yield piece;
      }
    })(),
  );
  for await (const chunk of source) {
    pieces = pieces.concat(cut(chunk));
    while (pieces.length > 1) {
      const unpacked = step();
      if (unpacked !== undefined && unpacked.length > 0) yield unpacked;
    }
  }
  for (let unpacked = step(); unpacked !== undefined; unpacked = step()) {
    if (unpacked.length > 0) yield unpacked;
  }

  /** What one step unpacks; undefined after the last. */
  function step(): Buffer | undefined {
    let result: IteratorResult<Uint8Array, void>;
    try {
      result = steps.next();
    } catch {
      throw new DamagedDataError('the zstd data ends in the middle of a frame: the file is cut off');
    }
    if (result.done) return undefined;
    const { value } = result;
    // The decoder does not look at the codes of errors: it would try the same bytes for ever.
    idleSteps = value.length > 0 ? 0 : idleSteps + 1;
    if (idleSteps > MAX_IDLE_STEPS) {
      throw new DamagedDataError(
        'the zstd data cannot be unpacked from here on: it is damaged, other data follows, or it was packed with a ' +
          'window above 128 MiB (zstd --long=28 and more; pack it again without)',
      );
    }
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
}

function cut(chunk: Buffer): Buffer[] {
  const count = Math.ceil(chunk.length / PIECE_BYTES);
  return Array.from({ length: count }, (_, i) => chunk.subarray(i * PIECE_BYTES, (i + 1) * PIECE_BYTES));
}
