import { EMBEDDING_FORMATS } from '../embeddings/embedding-set.ts';
import { openEmbeddings } from '../embeddings/open-embeddings.ts';
import { checkFits, type GivenVectors } from '../indexer/vectors/given-vectors.ts';
import type { ModelOverrides } from '../src/embedding/model-overrides.ts';
import type { TextEncoder } from '../src/embedding/text-encoder.ts';
import { TrawlError } from '../src/errors.ts';
import { METRICS } from '../src/metric.ts';
import type { OptionTable, OptionValues } from '../src/options/option-spec.ts';
import { VECTOR_DTYPES } from '../src/vector-index/vector-segments.ts';

/** Options about vectors that are taken from files. */
export const VECTOR_FILE_OPTIONS = {
  'vectors-format': {
    kind: 'choice',
    choices: EMBEDDING_FORMATS,
    help: 'Kind of the files of vectors, where their first bytes should not decide. memmap: raw values without a header.',
  },
  dtype: {
    kind: 'choice',
    choices: VECTOR_DTYPES,
    default: 'float32',
    help: 'Type of the values of raw files of vectors; other kinds say it themselves.',
  },
  metric: {
    kind: 'choice',
    choices: METRICS,
    help: "How vectors from files are compared. Default: the model's way, which the files must not contradict.",
  },
  'check-model': {
    kind: 'integer',
    value: 'N',
    default: 32,
    min: 0,
    max: 100_000,
    help: 'Embed N random passages again and compare them with their vectors from files, to prove model, prefix, pooling and template; what fits better is named. 0: do not.',
  },
} as const satisfies OptionTable;

/** Where vectors are embedded the model decides these. @throws TrawlError USAGE. */
export function refuseWithoutVectors(given: ReadonlySet<string>): void {
  const other = ['vectors-format', 'dtype', 'metric'].find((name) => given.has(name));
  if (other === undefined) return;
  throw new TrawlError('USAGE', `--${other} is about vectors from files; without --from-embeddings leave it out.`);
}

/** @throws TrawlError VECTORS_NOT_FOUND, VECTORS_INVALID, VECTORS_UNSUPPORTED, VECTORS_MISMATCH. */
export function givenVectors(
  paths: readonly string[],
  options: OptionValues<typeof VECTOR_FILE_OPTIONS>,
  how: {
    use: GivenVectors['use'];
    relativePaths?: boolean;
    encoder: TextEncoder;
    reopen: (changed: ModelOverrides) => Promise<TextEncoder>;
  },
): GivenVectors {
  const { use, relativePaths, encoder, reopen } = how;
  const set = openEmbeddings(paths, {
    dimension: encoder.dimension,
    dtype: options.dtype,
    format: options['vectors-format'],
  });
  const metric = checkFits(set, encoder.identity, options.metric);
  return { set, use, metric, relativePaths, check: { rows: options['check-model'], reopen } };
}
