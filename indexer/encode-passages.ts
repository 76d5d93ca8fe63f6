import { parseJson } from '../corpus/parse-json.ts';
import type { PassageRow } from '../corpus/passage.ts';
import type { PassageTemplate } from '../corpus/passage-template.ts';
import { throwIfCancelled } from '../src/abort.ts';
import type { EncodeResult, TextEncoder } from '../src/embedding/text-encoder.ts';
import { bug, TrawlError } from '../src/errors.ts';
import type { SqlitePassageWriter } from '../src/passages/sqlite-passage-writer.ts';
import type { OnProgress } from './build-events.ts';
import type { ShardVectors } from './shard-vectors.ts';

/** Passages handed to the encoder at once. */
const BATCH_PASSAGES = 256;
/** Batches under way: enough that no worker waits while a batch is written, few enough to bound memory. */
const BATCHES_IN_FLIGHT = 4;

export interface EncodeSummary {
  readonly tokens: number;
  readonly truncatedPassages: number;
}

/** The second stage: stored passages → texts → vectors, written in row order. */
export async function encodePassages(
  passages: SqlitePassageWriter,
  template: PassageTemplate,
  encoder: TextEncoder,
  vectors: ShardVectors,
  { onProgress, signal }: { onProgress: OnProgress; signal: AbortSignal | undefined },
): Promise<EncodeSummary> {
  const total = passages.rows;
  const inFlight: { first: number; result: Promise<EncodeResult> }[] = [];
  let next = 0;
  let tokens = 0;
  let truncatedPassages = 0;
  try {
    while (next < total || inFlight.length > 0) {
      while (next < total && inFlight.length < BATCHES_IN_FLIGHT) {
        throwIfCancelled(signal);
        const texts = passages.documents(next, BATCH_PASSAGES).map((document) => template(parseRow(document)));
        const result = encoder.encode(texts, { kind: 'passage', ...(signal === undefined ? {} : { signal }) });
        // Handled where it is awaited; until then a failure must not count as unhandled.
        result.catch(() => undefined);
        inFlight.push({ first: next, result });
        next += texts.length;
      }
      const { first, result } = inFlight.shift()!;
      const encoded = await result;
      for (const [i, outcome] of encoded.outcomes.entries()) {
        if (!outcome.ok) throw failedPassage(first + i, outcome.error);
        tokens += outcome.tokens;
        if (outcome.truncated) truncatedPassages++;
      }
      await vectors.append(encoded.vectors);
      onProgress({ stage: 'encode', passages: vectors.rowsWritten, totalPassages: total, tokens });
    }
  } finally {
    await Promise.allSettled(inFlight.map(({ result }) => result));
  }
  return { tokens, truncatedPassages };
}

function failedPassage(row: number, error: TrawlError): TrawlError {
  return new TrawlError(error.code, `The passage of row ${row} could not be embedded: ${error.message}`, {
    details: { ...error.details, row },
    cause: error,
  });
}

/** The stored document as the reader saw it, large integers exact. */
function parseRow(document: string): PassageRow {
  const parsed = parseJson(document);
  if (!parsed.ok) throw bug(`a stored document does not parse: ${parsed.reason}`);
  return parsed.value as PassageRow;
}
