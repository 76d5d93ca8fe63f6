import { parseJson } from '../../corpus/parse-json.ts';
import type { PassageRow } from '../../corpus/passage.ts';
import type { PassageTemplate } from '../../corpus/passage-template.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { bug, TrawlError } from '../../src/base/errors.ts';
import { inOrder } from '../../src/base/in-order.ts';
import { type EncodeOutcome, type EncodeResult, type TextEncoder, tokensOf } from '../../src/encoder/text-encoder.ts';
import type { PassageFile } from '../../src/index/passages/passage-file.ts';
import { keptRows } from '../vectors/read-segments.ts';

/**
 * Passages per call of the encoder. Batches start at multiples of this number, so that a resumed build gets the same vectors
 * even if the encoder's vectors depend on the batch.
 */
export const BATCH_PASSAGES = 256;
/** Enough calls to keep all workers busy while a batch is written, and few enough to bound memory. An encoder behind HTTP may want more. */
const BATCHES_IN_FLIGHT = 4;

/** A text that an encoder takes unless it takes none. */
const CONTROL_TEXT = 'The Danube flows through Vienna.';

/** A passage whose text the encoder refuses. */
interface RefusedPassage {
  readonly row: number;
  readonly message: string;
}

export interface EncodedBatch {
  /** Of the passages that are not refused. */
  readonly vectors: Float32Array;
  readonly tokens: number;
  readonly truncatedPassages: number;
  readonly refused: readonly RefusedPassage[];
}

/** The passages that are embedded, by their place from 0. */
export interface EncodedPassages {
  readonly texts: (first: number, count: number) => readonly string[] | Promise<readonly string[]>;
  /** Where the passage at a place is, for messages: its row (of a build, in its shard) and, if it is known, its line in the corpus. */
  readonly whereIs: (place: number) => { readonly row: number; readonly line?: number };
}

/**
 * Embeds the passages from place `from`, a multiple of BATCH_PASSAGES, up to `rows`, and yields the batches in their order. After an
 * abort, the oldest running batch is still yielded; the others are dropped.
 *
 * @param range.skipsRefused leaves out passages that the encoder refuses, instead of failing at the first. Undefined: the caller has no
 * option for it.
 * @throws TrawlError ENCODING_FAILED with the row; CANCELLED.
 */
export async function* encodePassages(
  passages: EncodedPassages,
  { from, rows, skipsRefused }: { readonly from: number; readonly rows: number; readonly skipsRefused?: boolean },
  encoder: TextEncoder,
  signal: AbortSignal | undefined,
): AsyncGenerator<EncodedBatch, void> {
  const encode = async (first: number, stop: AbortSignal): Promise<EncodedBatch> => {
    const texts = await passages.texts(first, Math.min(BATCH_PASSAGES, rows - first));
    const encodeTexts = (some: readonly string[]) => encoder.encode(some, { inputType: 'passage', signal: stop });
    const result = await encodeTexts(texts);
    const refused = skipsRefused === true ? await refusedTwice(texts, result, encodeTexts) : new Set<number>();
    return encodedBatch(passages, first, result, refused, skipsRefused === false);
  };
  const atOnce = Math.max(BATCHES_IN_FLIGHT, encoder.busyCalls?.(BATCH_PASSAGES) ?? 0);
  const starts = Array.from({ length: Math.ceil((rows - from) / BATCH_PASSAGES) }, (_, i) => from + i * BATCH_PASSAGES);
  for await (const batch of inOrder(starts, encode, { atOnce, signal, finishesOldest: true })) {
    yield batch;
    throwIfCancelled(signal);
  }
}

/** The stored passages of a shard, with the texts that a template makes of them. */
export function storedTexts(passages: PassageFile, template: PassageTemplate): EncodedPassages {
  return {
    texts: (first, count) => passages.range(first, count).map((document) => template(storedRow(document))),
    whereIs: (row) => ({ row, line: passages.line(row) }),
  };
}

/** The texts that the encoder refuses again while it takes another. A fault of the server refuses no text. */
async function refusedTwice(
  texts: readonly string[],
  { outcomes }: EncodeResult,
  encode: (texts: readonly string[]) => Promise<EncodeResult>,
): Promise<ReadonlySet<number>> {
  const isRefused = (outcome: EncodeOutcome | undefined): boolean => outcome?.ok === false && outcome.isOfText === true;
  const once = [...texts.keys()].filter((i) => isRefused(outcomes[i]));
  if (once.length === 0) return new Set();
  const [control, ...again] = (await encode([CONTROL_TEXT, ...once.map((i) => texts[i]!)])).outcomes;
  return new Set(control?.ok === true ? once.filter((_, i) => isRefused(again[i])) : []);
}

/** @throws TrawlError the error of the first passage that could not be embedded and is not to be left out, with its place. */
function encodedBatch(
  passages: EncodedPassages,
  first: number,
  result: EncodeResult,
  leftOut: ReadonlySet<number>,
  maySkip: boolean,
): EncodedBatch {
  let truncatedPassages = 0;
  const refused: RefusedPassage[] = [];
  for (const [i, outcome] of result.outcomes.entries()) {
    if (!outcome.ok) {
      const { error } = outcome;
      const place = passages.whereIs(first + i);
      const line = place.line === undefined ? '' : ` (line ${place.line})`;
      const message = `The passage of row ${place.row}${line} could not be embedded: ${error.message}`;
      if (leftOut.has(i)) {
        refused.push({ row: place.row, message });
        continue;
      }
      const remedy =
        maySkip && outcome.isOfText === true
          ? ' With --skip-bad-lines, the same command resumes and leaves it out.'
          : '';
      throw new TrawlError(error.code, message + remedy, { details: { ...error.details, ...place }, cause: error });
    }
    if (outcome.truncated) truncatedPassages++;
  }
  const dimension = result.vectors.length / result.outcomes.length;
  const vectors = refused.length === 0 ? result.vectors : keptRows(result.vectors, dimension, (i) => !leftOut.has(i));
  return { vectors, tokens: tokensOf(result), truncatedPassages, refused };
}

/** The corpus row of a stored document. Integers beyond 2^53 stay exact. */
export function storedRow(document: string): PassageRow {
  const parsed = parseJson(document);
  if (!parsed.ok) throw bug(`a stored document does not parse: ${parsed.reason}`);
  return parsed.value as PassageRow;
}
