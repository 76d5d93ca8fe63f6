import { parseJson } from '../../corpus/parse-json.ts';
import type { PassageRow } from '../../corpus/passage.ts';
import type { PassageTemplate } from '../../corpus/passage-template.ts';
import { throwIfCancelled } from '../../src/abort.ts';
import { type EncodeResult, type TextEncoder, tokensOf } from '../../src/embedding/text-encoder.ts';
import { bug, TrawlError } from '../../src/errors.ts';
import type { PassageFile } from '../../src/passages/passage-file.ts';

/**
 * Passages per call of the encoder. Batches start at multiples of this number, so that a resumed build gets the same vectors
 * even if the encoder's vectors depend on the batch.
 */
export const BATCH_PASSAGES = 256;
/** Enough to keep all workers busy while a batch is written; bounds memory. An encoder behind HTTP may want more. */
const BATCHES_IN_FLIGHT = 4;

export interface EncodedBatch {
  /** Row-major. */
  readonly vectors: Float32Array;
  readonly tokens: number;
  readonly truncatedPassages: number;
}

interface Batch {
  readonly first: number;
  readonly result: Promise<EncodeResult>;
  readonly stop: AbortController;
}

/**
 * Embeds stored passages from row `from`, a multiple of BATCH_PASSAGES, up to `rows`. `onBatch` gets the batches in row
 * order. After an abort it still gets the oldest running batch; the others are dropped.
 *
 * @throws TrawlError ENCODING_FAILED with the row; CANCELLED; errors of `onBatch`.
 */
export async function encodePassages(
  passages: PassageFile,
  { from, rows }: { from: number; rows: number },
  template: PassageTemplate,
  encoder: TextEncoder,
  { onBatch, signal }: { onBatch: (batch: EncodedBatch) => Promise<void>; signal: AbortSignal | undefined },
): Promise<void> {
  const most = Math.max(BATCHES_IN_FLIGHT, encoder.busyCalls?.(BATCH_PASSAGES) ?? 0);
  const inFlight: Batch[] = [];
  const dropAll = (): void => {
    for (const { stop } of inFlight) stop.abort(signal?.reason);
  };
  signal?.addEventListener('abort', dropAll);
  let next = from;
  try {
    while (next < rows || inFlight.length > 0) {
      while (signal?.aborted !== true && next < rows && inFlight.length < most) {
        const texts = passages.range(next, BATCH_PASSAGES).map((document) => template(parseRow(document)));
        inFlight.push(begin(encoder, next, texts));
        next += texts.length;
      }
      const batch = inFlight.shift();
      if (batch !== undefined) await onBatch(checked(passages, batch.first, await batch.result));
      throwIfCancelled(signal);
    }
  } finally {
    signal?.removeEventListener('abort', dropAll);
    dropAll();
    await Promise.allSettled(inFlight.map(({ result }) => result));
  }
}

function begin(encoder: TextEncoder, first: number, texts: readonly string[]): Batch {
  const stop = new AbortController();
  const result = encoder.encode(texts, { inputType: 'passage', signal: stop.signal });
  // The batch is awaited later; until then, a failure must not count as an unhandled rejection.
  result.catch(() => undefined);
  return { first, result, stop };
}

function checked(passages: PassageFile, first: number, result: EncodeResult): EncodedBatch {
  const { vectors, outcomes } = result;
  let truncatedPassages = 0;
  for (const [i, outcome] of outcomes.entries()) {
    if (!outcome.ok) throw failedPassage(first + i, passages.line(first + i), outcome.error);
    if (outcome.truncated) truncatedPassages++;
  }
  return { vectors, tokens: tokensOf(result), truncatedPassages };
}

function failedPassage(row: number, line: number, error: TrawlError): TrawlError {
  return new TrawlError(
    error.code,
    `The passage of row ${row} (line ${line}) could not be embedded: ${error.message}`,
    {
      details: { ...error.details, row, line },
      cause: error,
    },
  );
}

/** Parses a stored document. Integers beyond 2^53 stay exact. */
function parseRow(document: string): PassageRow {
  const parsed = parseJson(document);
  if (!parsed.ok) throw bug(`a stored document does not parse: ${parsed.reason}`);
  return parsed.value as PassageRow;
}
