import { basename } from 'node:path';
import { readAllResult } from '../../bench/all/all-file.ts';
import { ALL_STAGES } from '../../bench/all/all-result.ts';
import { benchAll } from '../../bench/all/bench-all.ts';
import { baselinePython } from '../../bench/baselines.ts';
import type { BenchCommon } from '../../bench/bench-common.ts';
import { benchBulk } from '../../bench/bulk/bench-bulk.ts';
import { bulkReport } from '../../bench/bulk/bulk-report.ts';
import { benchEmbed } from '../../bench/embed/bench-embed.ts';
import { EMBED_BASELINES } from '../../bench/embed/embed-engine.ts';
import { embedReport } from '../../bench/embed/embed-report.ts';
import { benchFilter } from '../../bench/filter/bench-filter.ts';
import { filterReport } from '../../bench/filter/filter-report.ts';
import { FILTERED_MODES } from '../../bench/filter/filtered-searches.ts';
import { benchFlat } from '../../bench/flat/bench-flat.ts';
import { BASELINES } from '../../bench/flat/flat-engine.ts';
import { flatReport } from '../../bench/flat/flat-report.ts';
import { benchIndex } from '../../bench/index/bench-index.ts';
import { INDEX_BASELINES, type IndexBaseline } from '../../bench/index/index-baseline.ts';
import { indexReport } from '../../bench/index/index-report.ts';
import { benchBm25 } from '../../bench/lexical/bench-bm25.ts';
import { benchBm25Index } from '../../bench/lexical/bench-bm25-index.ts';
import { bm25Report } from '../../bench/lexical/bm25-report.ts';
import { BM25_BASELINES } from '../../bench/lexical/lexical-engine.ts';
import { benchModes } from '../../bench/modes/bench-modes.ts';
import { modesReport } from '../../bench/modes/modes-report.ts';
import { benchProducts } from '../../bench/products/bench-products.ts';
import { PRODUCT_KIND_NAMES } from '../../bench/products/product-kinds.ts';
import { productsReport } from '../../bench/products/products-report.ts';
import { reportPage } from '../../bench/report/report-page.ts';
import { benchServe } from '../../bench/serve/bench-serve.ts';
import { SERVE_BASELINES } from '../../bench/serve/serve-engine.ts';
import { SERVE_LOADS, STEADY_LOADS } from '../../bench/serve/serve-loads.ts';
import { serveReport } from '../../bench/serve/serve-report.ts';
import { benchTriage } from '../../bench/triage/bench-triage.ts';
import { triageErrorReport } from '../../bench/triage/triage-report.ts';
import { usageError } from '../../src/base/errors.ts';
import type { OptionValues } from '../../src/base/options/option-spec.ts';
import { PRECISIONS, type Precision } from '../../src/encoder/identity/model-identity.ts';
import type { VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import { requiredOption } from '../options/checks.ts';
import { requireWritable, writeOutputFile } from '../output/output-file.ts';
import type { BENCH_OPTIONS } from './bench-options.ts';
import { parseBandwidth, parseCounts, parseNames, parseNumbers } from './bench-values.ts';

type Options = OptionValues<typeof BENCH_OPTIONS>;

interface BenchOutcome {
  /** Environment, records and omitted baselines, for `--out`. */
  readonly result: object;
  readonly records: readonly object[];
  /** The report for a terminal. */
  text(): string;
  /** Whether the case writes its result itself. */
  readonly writes?: boolean;
  /** Sentences about what failed. */
  readonly problems?: readonly string[];
}

/** Options of synthetic vectors; they cannot be combined with --vectors. */
const SYNTHETIC_OPTIONS = ['rows', 'dimension', 'dtype', 'like'] as const;

const OPTIONS_OF = {
  all: ['size', 'report', 'stages', 'from', 'restart', 'model', 'baseline-model', 'corpus', 'query-texts', 'calls'],
  flat: [...SYNTHETIC_OPTIONS, 'runs', 'queries', 'k', 'vectors', 'query-vectors', 'prefilter', 'bandwidth-gb'],
  bulk: [...SYNTHETIC_OPTIONS, 'runs', 'queries', 'k', 'prefilter'],
  embed: ['model', 'runs', 'texts', 'sample', 'query-texts', 'precision', 'baseline-model', 'batch'],
  products: ['dimension', 'layers', 'tokens', 'kinds', 'runs'],
  index: ['rows', 'dimension', 'corpus', 'model', 'baseline-model'],
  serve: ['model', 'runs', 'precision', 'baseline-model', 'index', 'corpus', 'calls', 'loads', 'seconds'],
  filter: ['rows', 'runs', 'searches', 'dimension', 'queries', 'k', 'corpus', 'query-texts', 'calls'],
  modes: ['corpus', 'query-texts', 'questions', 'model', 'rerank', 'rerank-depth'],
  triage: ['index', 'tried', 'query-texts', 'questions', 'depths', 'samples', 'runs'],
  bm25: ['runs', 'corpus', 'rows', 'index', 'query-texts', 'calls', 'seconds'],
} as const satisfies Record<string, readonly (keyof Options)[]>;

type BenchCase = keyof typeof OPTIONS_OF;

/** @throws TrawlError USAGE for an unknown case, or an option that belongs to another case. */
export function checkBenchOptions(
  name: string,
  second: string | undefined,
  options: Options,
  given: ReadonlySet<string>,
): asserts name is BenchCase {
  const cases = Object.entries(OPTIONS_OF) as [BenchCase, readonly string[]][];
  const own = cases.find(([known]) => known === name)?.[1];
  if (own === undefined) {
    throw usageError(
      `Unknown case ${JSON.stringify(name)}; expected one of ${Object.keys(OPTIONS_OF).join(', ')} or baselines.`,
    );
  }
  const foreign = cases.flatMap(([, theirs]) => theirs).find((option) => given.has(option) && !own.includes(option));
  if (second !== undefined || foreign !== undefined) {
    const argument = second !== undefined ? `The second word, ${JSON.stringify(second)},` : `--${foreign}`;
    const places = cases.flatMap(([known, theirs]) => (theirs.includes(foreign ?? '') ? [known] : []));
    const owners = second !== undefined ? 'baselines' : places.join(' and ');
    throw usageError(`${argument} belongs to \`trawl bench ${owners}\`. Omit it.`);
  }
  const built = (['corpus', 'rows'] as const).find((option) => given.has(option));
  if (name === 'bm25' && options.index !== undefined && built !== undefined) {
    throw usageError(`--${built} is for an index that is built, --index for one that exists. Omit one of them.`);
  }
  const clash = SYNTHETIC_OPTIONS.find((option) => given.has(option));
  if (options.vectors !== undefined && clash !== undefined) {
    throw usageError(`--${clash} is for synthetic vectors, --vectors for a file. Omit one of them.`);
  }
}

export const BENCH_CASES: Readonly<
  Record<BenchCase, (options: Options, common: BenchCommon) => Promise<BenchOutcome>>
> = {
  all: benchAllCase,

  async flat(options, common) {
    const { rows, dimension, like, vectors: path } = options;
    const result = await benchFlat({
      ...common,
      vectors:
        path === undefined
          ? { source: 'synthetic', rows, dimension, dtype: options.dtype as VectorDtype, like }
          : { source: 'file', path },
      queryVectors: options['query-vectors'],
      queryCounts: parseCounts(options.queries),
      k: options.k,
      against: parseNames('--against', options.against, BASELINES, { none: true }),
      prefilter: options.prefilter === 'auto',
      bandwidthGbPerS: parseBandwidth(options['bandwidth-gb']),
    });
    return { result, records: result.records, text: () => flatReport(result.records, result.environment) };
  },

  async bulk(options, common) {
    const { rows, dimension, dtype, like, k } = options;
    const counts = parseCounts(options.queries);
    const result = await benchBulk({
      ...common,
      rows,
      dimension,
      dtype: dtype as VectorDtype,
      like,
      k,
      // The default, several sizes of a search, is for the other cases.
      queries: counts.length === 1 ? counts[0]! : 10_000,
      prefilter: options.prefilter === 'auto',
    });
    return { result, records: result.records, text: () => bulkReport(result) };
  },

  async embed(options, common) {
    const { precision } = options;
    const result = await benchEmbed({
      ...common,
      model: requiredOption('model', options.model, 'a model folder for `trawl bench embed`'),
      texts: requiredOption('texts', options.texts, 'a corpus file for `trawl bench embed`'),
      sample: options.sample,
      queryTexts: options['query-texts'],
      precisions: precision === undefined ? undefined : parseNames('--precision', precision, PRECISIONS),
      against: parseNames('--against', options.against, EMBED_BASELINES, { none: true }),
      baselineModel: options['baseline-model'],
      batch: options.batch,
    });
    const { records, environment, model } = result;
    return { result, records, text: () => embedReport(records, environment, model) };
  },

  async products(options, common) {
    const result = await benchProducts({
      ...common,
      hidden: options.dimension,
      layers: options.layers,
      tokenCounts: parseCounts(options.tokens, '--tokens'),
      kinds: parseNames('--kinds', options.kinds, PRODUCT_KIND_NAMES, { separator: ';' }),
    });
    return { result, records: result.records, text: () => productsReport(result) };
  },

  async index(options, common) {
    const { corpus, rows, dimension, model } = options;
    const baseline = indexBaseline(options, common);
    const result = await benchIndex({ ...common, corpus, rows, dimension, model, baseline });
    return { result, records: result.records, text: () => indexReport(result.records, result.environment) };
  },

  async serve(options, common) {
    const result = await benchServe({
      ...common,
      loads:
        options.loads === undefined
          ? SERVE_LOADS
          : parseNames('--loads', options.loads, [...SERVE_LOADS, ...STEADY_LOADS]),
      seconds: options.seconds,
      precision: onePrecision(options.precision),
      model: options.model,
      baselineModel: options['baseline-model'],
      index: options.index,
      corpus: options.corpus[0],
      calls: options.calls,
      against: parseNames('--against', options.against, SERVE_BASELINES, { none: true }),
    });
    return { result, records: result.records, text: () => serveReport(result) };
  },

  async filter(options, common) {
    const { rows, dimension, k, corpus, calls, searches } = options;
    const result = await benchFilter({
      ...common,
      modes: parseNames('--searches', searches, FILTERED_MODES, { none: true }),
      rows,
      dimension,
      k,
      corpus,
      calls,
      queryCounts: parseCounts(options.queries),
      queryTexts: options['query-texts'],
    });
    return { result, records: result.records, text: () => filterReport(result.records, result.environment) };
  },

  async modes(options, common) {
    const result = await benchModes({
      ...common,
      corpus: options.corpus,
      queryTexts: requiredOption(
        'query-texts',
        options['query-texts'],
        'a file of questions with gold_ids for `trawl bench modes`',
      ),
      questions: options.questions,
      model: requiredOption('model', options.model, 'a model folder for `trawl bench modes`'),
      rerank: options.rerank,
      rerankDepth: options['rerank-depth'],
    });
    return { result, records: result.records, text: () => modesReport(result) };
  },

  async triage(options, common) {
    requiredOption(
      'tried',
      options.tried[0],
      'an index of the same passages by another model for `trawl bench triage`',
    );
    const result = await benchTriage({
      ...common,
      index: requiredOption('index', options.index, 'the index of the present encoder for `trawl bench triage`'),
      tried: options.tried,
      queryTexts: requiredOption(
        'query-texts',
        options['query-texts'],
        'a file of questions with gold_ids for `trawl bench triage`',
      ),
      questions: options.questions,
      depths: parseNumbers('depths', options.depths, { max: 10_000, whole: true }),
      samples: parseNumbers('samples', options.samples, { max: 100, whole: false }),
    });
    return { result, records: result.records, text: () => triageErrorReport(result) };
  },

  async bm25(options, common) {
    const { calls, seconds, index } = options;
    const shared = { ...common, queryTexts: options['query-texts'], calls, seconds };
    if (index !== undefined) {
      const result = await benchBm25Index({ ...shared, index });
      return { result, records: result.records, text: () => bm25Report(result) };
    }
    const result = await benchBm25({
      ...shared,
      corpus: options.corpus,
      rows: options.rows,
      against: parseNames('--against', options.against, BM25_BASELINES, { none: true }),
    });
    return { result, records: result.records, text: () => bm25Report(result) };
  },
};

/** `trawl bench all`: measures or reads the figures, and draws the page. */
async function benchAllCase(options: Options, common: BenchCommon): Promise<BenchOutcome> {
  const { from, report, corpus } = options;
  const queryTexts = options['query-texts'];
  if (corpus.length > 0 !== (queryTexts !== undefined) || corpus.length > 1) {
    throw usageError(
      'trawl bench all needs --corpus, one file of JSON lines, and --query-texts, questions with gold_ids of its passages, together. Give both or neither.',
    );
  }
  const file = from ?? options.out ?? `${report.replace(/\.html?$/i, '')}.json`;
  await requireWritable(report);
  if (from === undefined) await requireWritable(file);
  const result =
    from === undefined
      ? await benchAll({
          ...common,
          size: options.size,
          stages: parseNames('--stages', options.stages, ALL_STAGES),
          restart: options.restart,
          file,
          model: options.model,
          baselineModel: options['baseline-model'],
          corpus: corpus[0],
          queryTexts,
          calls: options.calls,
        })
      : await readAllResult(from);
  await writeOutputFile(report, [reportPage(result, basename(file))]);
  const problems = Object.entries(result.stages).flatMap(([stage, outcome]) =>
    'failed' in outcome ? [`${stage} failed: ${outcome.failed}`] : [],
  );
  const records = Object.values(result.stages).flatMap((outcome) =>
    'result' in outcome && 'records' in outcome.result ? [...outcome.result.records] : [],
  );
  return { result, records, text: () => `${report} and ${file}`, writes: true, problems };
}

/** The baseline of `bench index`. Undefined, with a remark, if its checkpoint or Python environment is missing. */
function indexBaseline(options: Options, { python, cache, note }: BenchCommon): IndexBaseline | undefined {
  const [wanted] = parseNames('--against', options.against, INDEX_BASELINES, { none: true });
  const model = options['baseline-model'];
  if (wanted === undefined || options.model === undefined) return undefined;
  const interpreter = python ?? baselinePython(cache, 'serve');
  if (model !== undefined && interpreter !== undefined) return { python: interpreter, model };
  const missing = model === undefined ? '--baseline-model is not given' : '`trawl bench baselines serve` was not run';
  note(`${wanted} is omitted: ${missing}`);
  return undefined;
}

/** @throws TrawlError USAGE for several precisions. */
function onePrecision(text: string | undefined): Precision | undefined {
  if (text === undefined) return undefined;
  const [precision, other] = parseNames('--precision', text, PRECISIONS);
  if (other === undefined) return precision;
  throw usageError(`--precision is ${JSON.stringify(text)}; \`trawl bench serve\` takes one.`);
}
