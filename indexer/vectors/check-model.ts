import { parseJson } from '../../corpus/parse-json.ts';
import type { PassageRow } from '../../corpus/passage.ts';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { cutSegments, type EmbeddingSet } from '../../embeddings/embedding-set.ts';
import type { ModelOverrides } from '../../src/embedding/model-overrides.ts';
import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import type { Pooling } from '../../src/manifest/model-identity.ts';
import { PassageFile } from '../../src/passages/passage-file.ts';
import { SegmentReader } from '../../src/vector-index/vector-segments.ts';
import { checkFinite } from './check-finite.ts';
import { type Similarities, similarities, summary } from './similarities.ts';

/** How a check embeds rows again. */
export interface ModelCheck {
  /** How many rows are embedded again. */
  readonly rows: number;
  /** The model with other settings, to find those that the vectors were made with. */
  readonly reopen: (overrides: ModelOverrides) => Promise<TextEncoder>;
}

export interface StoredPassages {
  readonly path: string;
  readonly firstRow: number;
}

export interface CheckedModel extends Similarities {
  readonly rows: number;
}

/** Cosine from which a row counts as the same text in the same model: float16 and other kernels stay above it. */
const SAME = 0.999;
/** The same with an int8 encoder for vectors of a float one, where nothing else fits better. */
const SAME_INT8 = 0.97;
/** By how much something has to fit better. */
const BETTER = 0.005;
/** Share of the rows that have to be the same; a corpus may have been mended since. */
const SAME_SHARE = 0.95;
/** Rows that alternatives are tried with: each costs an embedding. */
const TRIED_ROWS = 12;
/** Most rows between a passage and its vector where one of the two has lines too many. */
const SHIFTS = [-1, 1];

const POOLINGS: readonly Pooling[] = ['mean', 'cls'];
const PREFIXES = ['', 'passage: ', 'query: '];
const TEMPLATES = ['{contents}', '{title} {text}', '{text}', '{title}\n{text}', '{title}. {text}'];
const LIMITS = [128, 180, 256, 300, 512];

interface Setting {
  readonly pooling: Pooling;
  readonly prefix: string;
  readonly template: string;
  /** In tokens. */
  readonly limit: number;
}

interface Sample {
  readonly row: number;
  readonly document: PassageRow;
  readonly vector: Float32Array;
}

/**
 * Embeds random rows again and compares them with their vectors: shows that the stated model, prefix, pooling and template
 * are those that the vectors were made with.
 *
 * @param files passage files in row order; together they have a passage for every vector.
 * @throws TrawlError VECTORS_OF_ANOTHER_MODEL with the similarities, and with what fits best of the usual ways.
 */
export async function checkModel(
  check: ModelCheck,
  set: EmbeddingSet,
  files: readonly StoredPassages[],
  { encoder, template, signal }: { encoder: TextEncoder; template: string; signal: AbortSignal | undefined },
): Promise<CheckedModel> {
  const samples = sampleRows(check.rows, set, files);
  const { identity } = encoder;
  const own: Setting = {
    pooling: identity.pooling,
    prefix: identity.prefixes.passage,
    template,
    limit: identity.maxTokens.passage,
  };
  const texts = textsOf(samples, template, '')!;
  const { vectors, outcomes } = await encoder.encode(texts, {
    kind: 'passage',
    ...(signal === undefined ? {} : { signal }),
  });
  for (const outcome of outcomes) if (!outcome.ok) throw outcome.error;
  const found = similarities(vectors, samples);
  if (shareFrom(SAME, found) >= SAME_SHARE) return { ...found, rows: samples.length };
  const shift = bestShift(set, vectors, samples, found.median);
  const best =
    shift !== undefined && shift.median >= SAME
      ? { setting: own, median: found.median }
      : await bestSetting(check, samples, own, signal);
  const isNearest = best.median < found.median + BETTER && (shift?.median ?? 0) < SAME;
  if (identity.precision === 'int8' && isNearest && shareFrom(SAME_INT8, found) >= SAME_SHARE) {
    return { ...found, rows: samples.length };
  }
  throw new TrawlError(
    'VECTORS_OF_ANOTHER_MODEL',
    `${samples.length} passages embedded again with ${identity.name} (${said(own)}) have a median similarity of ` +
      `${found.median.toFixed(4)} to their vectors, the least ${found.least.toFixed(4)}, where the same model gives 0.9999. ` +
      verdict(own, best, shift),
    {
      details: {
        median: found.median,
        least: found.least,
        rows: samples.length,
        best: best.setting,
        bestMedian: best.median,
      },
    },
  );
}

function shareFrom(least: number, { values }: Similarities): number {
  return values.filter((value) => value >= least).length / values.length;
}

function verdict(
  own: Setting,
  best: { setting: Setting; median: number },
  shift: { by: number; median: number } | undefined,
): string {
  if (shift !== undefined && shift.median >= SAME) {
    return (
      `They fit the vectors of the row ${shift.by > 0 ? 'after' : 'before'} (median ${shift.median.toFixed(4)}): corpus and ` +
      'vectors are a row apart. Name the corpus they were made from.'
    );
  }
  const changed = said(best.setting, own);
  if (changed === '')
    return 'None of the usual prefixes, poolings, templates and limits fits better: it is another model, or another corpus.';
  if (best.median < SAME) {
    return `Nearest of the usual ways is ${changed}, with ${best.median.toFixed(4)}: it is another model, or another corpus.`;
  }
  return `These vectors look like ${changed}: similarity ${best.median.toFixed(4)}. Set it with ${options(best.setting, own)}.`;
}

/** A setting in words; with `other` only what differs from that. */
function said(setting: Setting, other?: Setting): string {
  return [
    other?.pooling === setting.pooling ? '' : `pooling ${setting.pooling}`,
    other?.prefix === setting.prefix
      ? ''
      : setting.prefix === ''
        ? 'no prefix'
        : `prefix ${JSON.stringify(setting.prefix)}`,
    other?.template === setting.template ? '' : `template ${JSON.stringify(setting.template)}`,
    other?.limit === setting.limit ? '' : `${setting.limit} tokens`,
  ]
    .filter((part) => part !== '')
    .join(', ');
}

function options(setting: Setting, own: Setting): string {
  return [
    setting.pooling === own.pooling ? '' : `--pooling ${setting.pooling}`,
    setting.prefix === own.prefix ? '' : `--passage-prefix '${setting.prefix}'`,
    setting.template === own.template ? '' : `--passage-template '${setting.template.replaceAll('\n', "'$'\\n''")}'`,
    setting.limit === own.limit ? '' : `--max-passage-tokens ${setting.limit}`,
  ]
    .filter((part) => part !== '')
    .join(' ');
}

/** Pooling and prefix together, since they are often wrong together; then the template, then the limit. */
async function bestSetting(
  check: ModelCheck,
  samples: readonly Sample[],
  own: Setting,
  signal: AbortSignal | undefined,
): Promise<{ setting: Setting; median: number }> {
  const some = samples.slice(0, TRIED_ROWS);
  let best = { setting: own, mean: -2, median: -2, least: -2 };
  const encoders = new Map<string, TextEncoder>();
  const trySetting = async (setting: Setting, tried = some): Promise<void> => {
    const texts = textsOf(tried, setting.template, setting.prefix);
    const key = `${setting.pooling} ${setting.limit}`;
    const encoder = encoders.get(key) ?? (await reopened(check, setting));
    if (texts === undefined || encoder === undefined) return;
    encoders.set(key, encoder);
    const { vectors } = await encoder.encode(texts, { kind: 'passage', ...(signal === undefined ? {} : { signal }) });
    const { mean, median, least } = similarities(vectors, tried);
    // Settings that make no difference here are not told from the stated one.
    if (mean > best.mean + 1e-6) best = { setting, mean, median, least };
  };
  /** Something else than what was stated gives these very vectors. */
  const isFound = (): boolean => best.setting !== own && best.least >= SAME;
  try {
    await trySetting(own);
    const poolings =
      own.pooling === 'none' ? [own.pooling] : [own.pooling, ...POOLINGS.filter((p) => p !== own.pooling)];
    for (const pooling of poolings) {
      for (const prefix of [own.prefix, ...PREFIXES.filter((p) => p !== own.prefix)]) {
        if (!isFound()) await trySetting({ ...own, pooling, prefix });
      }
    }
    for (const template of TEMPLATES) if (!isFound()) await trySetting({ ...best.setting, template });
    if (isFound()) return best;
    // A limit tells in long passages alone.
    const texts = textsOf(samples, best.setting.template, '')!;
    const lengths = new Map(samples.map((sample, i) => [sample, texts[i]!.length]));
    const longest = samples.toSorted((a, b) => lengths.get(b)! - lengths.get(a)!).slice(0, TRIED_ROWS);
    const { setting } = best;
    best = { setting, mean: -2, median: -2, least: -2 };
    await trySetting(setting, longest);
    for (const limit of LIMITS) if (limit !== setting.limit) await trySetting({ ...setting, limit }, longest);
    return best;
  } finally {
    for (const encoder of encoders.values()) await encoder.close();
  }
}

/** Undefined where the model does not take the setting. The prefix is part of the texts. */
async function reopened(check: ModelCheck, { pooling, limit }: Setting): Promise<TextEncoder | undefined> {
  try {
    return await check.reopen({ pooling, passagePrefix: '', maxPassageTokens: limit });
  } catch (error) {
    if (error instanceof TrawlError && /^(CONFIG_INVALID|USAGE|MODEL_INVALID)$/.test(error.code)) return undefined;
    throw error;
  }
}

/** Undefined where a row lacks a column of the template. */
function textsOf(samples: readonly Sample[], template: string, prefix: string): string[] | undefined {
  const render = parseTemplate(template);
  try {
    return samples.map(({ document }) => prefix + render(document));
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'TEMPLATE_INVALID') return undefined;
    throw error;
  }
}

function bestShift(
  set: EmbeddingSet,
  vectors: Float32Array,
  samples: readonly Sample[],
  median: number,
): { by: number; median: number } | undefined {
  const reader = new SegmentReader(set.segments, set.dimension);
  try {
    let best: { by: number; median: number } | undefined;
    for (const by of SHIFTS) {
      const inside = samples.flatMap(({ row }, i) =>
        row + by >= 0 && row + by < set.rows ? [{ row: row + by, i }] : [],
      );
      const values = inside.map(({ row, i }) => {
        const vector = vectors.subarray(i * set.dimension, (i + 1) * set.dimension);
        return similarities(vector, [{ vector: rowOf(reader, row) }]).median;
      });
      const found = summary(values).median;
      if (found > (best?.median ?? median)) best = { by, median: found };
    }
    return best;
  } finally {
    reader.close();
  }
}

/** Random rows, the same for every run, ascending. */
function sampleRows(count: number, set: EmbeddingSet, files: readonly StoredPassages[]): Sample[] {
  const rows = new Set<number>();
  let state = 0x9e3779b9;
  while (rows.size < Math.min(count, set.rows)) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    rows.add(Math.floor((state / 2 ** 32) * set.rows));
    // A small set is taken whole rather than waited for.
    if (set.rows <= count) for (let row = 0; row < set.rows; row++) rows.add(row);
  }
  const reader = new SegmentReader(set.segments, set.dimension);
  try {
    return [...rows].map((row) => {
      const shard = files.findLast(({ firstRow }) => row >= firstRow)!;
      const file = new PassageFile(shard.path, { mapped: false });
      try {
        const parsed = parseJson(file.document(row - shard.firstRow)!);
        if (!parsed.ok) throw new TrawlError('INTERNAL', `a stored document does not parse: ${parsed.reason}`);
        const vector = rowOf(reader, row);
        checkFinite(vector, { segments: cutSegments(set, row, 1), dimension: set.dimension, first: 0, firstRow: row });
        return { row, document: parsed.value as PassageRow, vector };
      } finally {
        file.close();
      }
    });
  } finally {
    reader.close();
  }
}

function rowOf(reader: SegmentReader, row: number): Float32Array {
  const vector = new Float32Array(reader.dimension);
  reader.read(row, 1, vector);
  return vector;
}
