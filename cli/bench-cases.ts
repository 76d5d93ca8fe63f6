import { baselinePython } from '../bench/baselines.ts';
import { benchEmbed } from '../bench/bench-embed.ts';
import { BASELINES } from '../bench/bench-engine.ts';
import { benchFlat } from '../bench/bench-flat.ts';
import { benchIndex } from '../bench/bench-index.ts';
import { benchServe } from '../bench/bench-serve.ts';
import { EMBED_BASELINES } from '../bench/embed-engine.ts';
import { INDEX_BASELINES, type IndexBaseline } from '../bench/index-baseline.ts';
import { indexReport } from '../bench/index-record.ts';
import { embedReport, flatReport, serveReport } from '../bench/report.ts';
import { SERVE_BASELINES } from '../bench/serve-engine.ts';
import { SERVE_LOADS } from '../bench/serve-loads.ts';
import { TrawlError } from '../src/errors.ts';
import { PRECISIONS } from '../src/manifest/model-identity.ts';
import type { OptionValues } from '../src/options/option-spec.ts';
import type { VectorDtype } from '../src/vector-index/vector-segments.ts';
import type { BENCH_OPTIONS } from './bench-options.ts';
import { parseBandwidth, parseCounts, parseNames } from './bench-values.ts';

type Options = OptionValues<typeof BENCH_OPTIONS>;

/** Options that describe synthetic vectors; a file says these things itself. */
const SYNTHETIC_OPTIONS = ['rows', 'dimension', 'dtype', 'like'] as const;

/** Options that do not mean something to every case. */
const OPTIONS_OF = {
  flat: [...SYNTHETIC_OPTIONS, 'runs', 'queries', 'k', 'vectors', 'query-vectors', 'screen', 'bandwidth-gb'],
  embed: ['model', 'runs', 'texts', 'sample', 'query-texts', 'precision', 'baseline-model', 'batch'],
  index: ['rows', 'dimension', 'corpus', 'model', 'baseline-model'],
  serve: ['model', 'runs', 'baseline-model', 'index', 'corpus', 'calls', 'loads', 'seconds'],
} as const satisfies Record<string, readonly (keyof Options)[]>;

type BenchCase = keyof typeof OPTIONS_OF;

export interface BenchCommon {
  readonly threads: number;
  readonly runs: number;
  readonly seed: number;
  readonly cache: string;
  readonly scratch: string;
  readonly python: string | undefined;
  readonly signal: AbortSignal;
  note(text: string): void;
}

export interface BenchOutcome {
  /** Environment, records and what was left out. */
  readonly result: object;
  readonly records: readonly object[];
  /** For a person. */
  text(): string;
}

/** @throws TrawlError USAGE naming the case that is none, or the option that belongs to another. */
export function checkBenchOptions(
  name: string,
  of: string | undefined,
  options: Options,
  given: ReadonlySet<string>,
): asserts name is BenchCase {
  const cases = Object.entries(OPTIONS_OF) as [BenchCase, readonly string[]][];
  const own = cases.find(([known]) => known === name)?.[1];
  if (own === undefined) {
    throw new TrawlError(
      'USAGE',
      `There is no case ${JSON.stringify(name)}; there are ${Object.keys(OPTIONS_OF).join(', ')} and baselines.`,
    );
  }
  const foreign = cases.flatMap(([, theirs]) => theirs).find((option) => given.has(option) && !own.includes(option));
  if (of !== undefined || foreign !== undefined) {
    const what = of !== undefined ? `A second word, ${JSON.stringify(of)},` : `--${foreign}`;
    const places = cases.flatMap(([known, theirs]) => (theirs.includes(foreign ?? '') ? [known] : []));
    const belongs = of !== undefined ? 'baselines' : places.join(' and ');
    throw new TrawlError('USAGE', `${what} belongs to \`trawl bench ${belongs}\`. Leave it out.`);
  }
  const clash = SYNTHETIC_OPTIONS.find((option) => given.has(option));
  if (options.vectors !== undefined && clash !== undefined) {
    throw new TrawlError(
      'USAGE',
      `--${clash} describes synthetic vectors; --vectors takes them from a file. Leave one out.`,
    );
  }
}

const CASES: Readonly<Record<BenchCase, (options: Options, common: BenchCommon) => Promise<BenchOutcome>>> = {
  async flat(options, common) {
    const { rows, dimension, like, vectors: path } = options;
    const result = await benchFlat({
      ...common,
      vectors:
        path === undefined
          ? { kind: 'synthetic', rows, dimension, dtype: options.dtype as VectorDtype, like }
          : { kind: 'file', path },
      queryVectors: options['query-vectors'],
      queryCounts: parseCounts(options.queries),
      k: options.k,
      against: parseNames('--against', options.against, BASELINES, { none: true }),
      screen: options.screen === 'auto',
      bandwidthGbPerS: parseBandwidth(options['bandwidth-gb']),
    });
    return { result, records: result.records, text: () => flatReport(result.records, result.environment) };
  },

  async embed(options, common) {
    const { precision } = options;
    const result = await benchEmbed({
      ...common,
      model: required('model', options.model),
      texts: required('texts', options.texts),
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

  async index(options, common) {
    const { corpus, rows, dimension, model } = options;
    const baseline = indexBaseline(options, common);
    const result = await benchIndex({ ...common, corpus, rows, dimension, model, baseline });
    return { result, records: result.records, text: () => indexReport(result.records, result.environment) };
  },

  async serve(options, common) {
    const result = await benchServe({
      ...common,
      loads: parseNames('--loads', options.loads, SERVE_LOADS),
      seconds: options.seconds,
      model: options.model,
      baselineModel: options['baseline-model'],
      index: options.index,
      corpus: options.corpus[0],
      calls: options.calls,
      against: parseNames('--against', options.against, SERVE_BASELINES, { none: true }),
    });
    return { result, records: result.records, text: () => serveReport(result) };
  },
};

export function runBench(name: BenchCase, options: Options, common: BenchCommon): Promise<BenchOutcome> {
  return CASES[name](options, common);
}

/** Where there is a checkpoint to build from, and the environment to do it in. */
function indexBaseline(options: Options, { python, cache, note }: BenchCommon): IndexBaseline | undefined {
  const [wanted] = parseNames('--against', options.against, INDEX_BASELINES, { none: true });
  const model = options['baseline-model'];
  if (wanted === undefined || options.model === undefined) return undefined;
  const interpreter = python ?? baselinePython(cache, 'serve');
  if (model !== undefined && interpreter !== undefined) return { python: interpreter, model };
  const missing = model === undefined ? '--baseline-model is not given' : '`trawl bench baselines serve` was not run';
  note(`${wanted} is left out: ${missing}`);
  return undefined;
}

function required(option: 'model' | 'texts', value: string | undefined): string {
  if (value !== undefined && value !== '') return value;
  throw new TrawlError(
    'USAGE',
    `\`trawl bench embed\` needs --${option}: ${option === 'model' ? 'a model folder' : 'a corpus file'}.`,
  );
}
