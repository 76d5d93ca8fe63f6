import { parseJson } from '../../corpus/parse-json.ts';
import type { PassageRow } from '../../corpus/passage.ts';
import type { PassageTemplate } from '../../corpus/passage-template.ts';
import { throwIfCancelled } from '../../src/abort.ts';
import type { EncodeResult, TextEncoder } from '../../src/embedding/text-encoder.ts';
import { bug, TrawlError } from '../../src/errors.ts';
import type { PassageFile } from '../../src/passages/passage-file.ts';

/**
 * Passages handed to the encoder at once. A batch begins at a multiple of this row, resumed or not: an encoder whose
 * vectors depend on the batch gives the same ones.
 */
export const BATCH_PASSAGES = 256;
/** Batches under way: enough that no worker waits while a batch is written, few enough to bound memory. */
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
 * The second stage: stored passages → texts → vectors, given to `onBatch` in row order, from row `from` (a multiple of
 * BATCH_PASSAGES) to the end. When the signal comes, the batch that is next in turn is finished and given, the others are
 * dropped.
 *
 * @throws TrawlError ENCODING_FAILED naming the row; CANCELLED; what `onBatch` throws.
 */
export async function encodePassages(
  passages: PassageFile,
  { from, rows }: { from: number; rows: number },
  template: PassageTemplate,
  encoder: TextEncoder,
  { onBatch, signal }: { onBatch: (batch: EncodedBatch) => Promise<void>; signal: AbortSignal | undefined },
): Promise<void> {
  const inFlight: Batch[] = [];
  const dropWaiting = (): void => {
    for (const { stop } of inFlight) stop.abort(signal?.reason);
  };
  signal?.addEventListener('abort', dropWaiting);
  let next = from;
  try {
    while (next < rows || inFlight.length > 0) {
      while (signal?.aborted !== true && next < rows && inFlight.length < BATCHES_IN_FLIGHT) {
        const texts = passages.range(next, BATCH_PASSAGES).map((document) => template(parseRow(document)));
        inFlight.push(begin(encoder, next, texts));
        next += texts.length;
      }
      const batch = inFlight.shift();
      if (batch !== undefined) await onBatch(checked(passages, batch.first, await batch.result));
      throwIfCancelled(signal);
    }
  } finally {
    signal?.removeEventListener('abort', dropWaiting);
    dropWaiting();
    await Promise.allSettled(inFlight.map(({ result }) => result));
  }
}

function begin(encoder: TextEncoder, first: number, texts: readonly string[]): Batch {
  const stop = new AbortController();
  const result = encoder.encode(texts, { kind: 'passage', signal: stop.signal });
  // Handled where it is awaited; until then a failure must not count as unhandled.
  result.catch(() => undefined);
  return { first, result, stop };
}

function checked(passages: PassageFile, first: number, { vectors, outcomes }: EncodeResult): EncodedBatch {
  let tokens = 0;
  let truncatedPassages = 0;
  for (const [i, outcome] of outcomes.entries()) {
    if (!outcome.ok) throw failedPassage(first + i, passages.line(first + i), outcome.error);
    tokens += outcome.tokens;
    if (outcome.truncated) truncatedPassages++;
  }
  return { vectors, tokens, truncatedPassages };
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

/** The stored document as the reader saw it, large integers exact. */
function parseRow(document: string): PassageRow {
  const parsed = parseJson(document);
  if (!parsed.ok) throw bug(`a stored document does not parse: ${parsed.reason}`);
  return parsed.value as PassageRow;
}
