import type { PassageRow } from '../../corpus/passage.ts';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { Pooling } from '../../src/encoder/identity/model-identity.ts';
import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';

/** The settings, besides the model's weights, that determine the vector of a passage. */
export interface EmbeddingSettings {
  readonly pooling: Pooling;
  readonly prefix: string;
  readonly template: string;
  /** Token limit; null if an endpoint does not say it. */
  readonly limit: number | null;
}

export interface EmbeddedPassage {
  readonly document: PassageRow;
  readonly vector: Float32Array;
}

export interface FoundSettings {
  readonly settings: EmbeddingSettings;
  /** Median similarity of the passages, embedded with these settings, to their vectors. */
  readonly median: number;
}

export type ReopenEncoder = (overrides: ModelOverrides) => Promise<TextEncoder>;

const TRIED_PASSAGES = 12;

const POOLINGS: readonly Pooling[] = ['mean', 'cls'];
const PREFIXES = ['', 'passage: ', 'query: '];
const TEMPLATES = ['{contents}', '{title} {text}', '{text}', '{title}\n{text}', '{title}. {text}'];
const LIMITS = [128, 180, 256, 300, 512];

/**
 * Searches common settings for those that reproduce the vectors of the samples: first pooling and prefix together, because
 * both are often wrong, then the template, then the token limit.
 *
 * @param same lowest cosine of vectors with the same text and settings.
 */
export async function bestSettings(
  reopen: ReopenEncoder,
  samples: readonly EmbeddedPassage[],
  own: EmbeddingSettings,
  { same, signal }: { same: number; signal: AbortSignal | undefined },
): Promise<FoundSettings> {
  const some = samples.slice(0, TRIED_PASSAGES);
  let best = { settings: own, mean: -2, median: -2, lowest: -2 };
  const encoders = new Map<string, TextEncoder>();
  const tryOut = async (settings: EmbeddingSettings, tried = some): Promise<void> => {
    const texts = renderTexts(tried, settings.template, settings.prefix);
    const key = `${settings.pooling} ${settings.limit}`;
    const encoder = encoders.get(key) ?? (await reopened(reopen, settings));
    if (texts === undefined || encoder === undefined) return;
    encoders.set(key, encoder);
    const { vectors } = await encoder.encode(texts, { inputType: 'passage', signal });
    const { mean, median, lowest } = similarities(vectors, tried);
    // Settings with the same vectors as earlier ones are not an improvement.
    if (mean > best.mean + 1e-6) best = { settings, mean, median, lowest };
  };
  /** Whether settings other than the stated ones reproduce the vectors. */
  const isFound = (): boolean => best.settings !== own && best.lowest >= same;
  try {
    await tryOut(own);
    const poolings =
      own.pooling === 'none' ? [own.pooling] : [own.pooling, ...POOLINGS.filter((p) => p !== own.pooling)];
    for (const pooling of poolings) {
      for (const prefix of [own.prefix, ...PREFIXES.filter((p) => p !== own.prefix)]) {
        if (!isFound()) await tryOut({ ...own, pooling, prefix });
      }
    }
    for (const template of TEMPLATES) if (!isFound()) await tryOut({ ...best.settings, template });
    if (isFound()) return best;
    // Only long passages show the token limit.
    const { settings } = best;
    const longest = longestPassages(samples, settings.template);
    best = { settings, mean: -2, median: -2, lowest: -2 };
    await tryOut(settings, longest);
    for (const limit of settings.limit === null ? [] : LIMITS)
      if (limit !== settings.limit) await tryOut({ ...settings, limit }, longest);
    return best;
  } finally {
    for (const encoder of encoders.values()) await encoder.close();
  }
}

/** The texts for the encoder. Undefined if a passage lacks a column of the template. */
export function renderTexts(
  samples: readonly EmbeddedPassage[],
  template: string,
  prefix: string,
): string[] | undefined {
  const render = parseTemplate(template);
  try {
    return samples.map(({ document }) => prefix + render(document));
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'TEMPLATE_INVALID') return undefined;
    throw error;
  }
}

/** Describes the settings in words; with `other`, only those that differ from it. */
export function describeSettings(settings: EmbeddingSettings, other?: EmbeddingSettings): string {
  const { pooling, prefix, template, limit } = settings;
  return [
    other?.pooling === pooling ? '' : `pooling ${pooling}`,
    other?.prefix === prefix ? '' : prefix === '' ? 'no prefix' : `prefix ${JSON.stringify(prefix)}`,
    other?.template === template ? '' : `template ${JSON.stringify(template)}`,
    limit === null || other?.limit === limit ? '' : `${limit} tokens`,
  ]
    .filter((part) => part !== '')
    .join(', ');
}

/** The command-line options that change `own` to the settings. */
export function settingsOptions(
  { pooling, prefix, template, limit }: EmbeddingSettings,
  own: EmbeddingSettings,
): string {
  return [
    pooling === own.pooling ? '' : `--pooling ${pooling}`,
    prefix === own.prefix ? '' : `--passage-prefix '${prefix}'`,
    template === own.template ? '' : `--passage-template '${template.replaceAll('\n', "'$'\\n''")}'`,
    limit === own.limit ? '' : `--max-passage-tokens ${limit}`,
  ]
    .filter((part) => part !== '')
    .join(' ');
}

function longestPassages(samples: readonly EmbeddedPassage[], template: string): EmbeddedPassage[] {
  const texts = renderTexts(samples, template, '')!;
  const lengths = new Map(samples.map((sample, i) => [sample, texts[i]!.length]));
  return samples.toSorted((a, b) => lengths.get(b)! - lengths.get(a)!).slice(0, TRIED_PASSAGES);
}

/** Undefined if the model does not support the settings. The prefix is part of the texts. */
async function reopened(
  reopen: ReopenEncoder,
  { pooling, limit }: EmbeddingSettings,
): Promise<TextEncoder | undefined> {
  try {
    return await reopen({ pooling, passagePrefix: '', maxPassageTokens: limit ?? undefined });
  } catch (error) {
    if (error instanceof TrawlError && /^(CONFIG_INVALID|USAGE|MODEL_INVALID)$/.test(error.code)) return undefined;
    throw error;
  }
}

export interface Similarities {
  /** Cosines, −1 to 1, in row order; larger is nearer. */
  readonly values: readonly number[];
  readonly median: number;
  readonly lowest: number;
  readonly mean: number;
}

/** The cosine between vector i (row-major) and row i's vector, for each i; 0 if one of them is zero. */
export function similarities(vectors: Float32Array, rows: readonly { readonly vector: Float32Array }[]): Similarities {
  return summary(
    rows.map(({ vector }, i) => {
      let [dot, left, right] = [0, 0, 0];
      for (const [j, value] of vector.entries()) {
        const other = vectors[i * vector.length + j]!;
        dot += value * other;
        left += value * value;
        right += other * other;
      }
      return left === 0 || right === 0 ? 0 : dot / Math.sqrt(left * right);
    }),
  );
}

export function summary(values: readonly number[]): Similarities {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const median = ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  return { values, median, lowest: sorted[0] ?? 0, mean };
}
