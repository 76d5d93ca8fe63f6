import type { MachinePeaks, StageOutcome } from '../all/all-result.ts';
import type { BenchEmbedResult } from '../embed/bench-embed.ts';
import type { BenchProductsResult } from '../products/bench-products.ts';
import * as figure from '../report/figures.ts';
import { loadName, rolloutServer } from '../report/load-names.ts';
import { threadsInWords } from '../report/threads-in-words.ts';
import type { ServeRecord } from '../serve/serve-case.ts';

/** Whose clients send such a load. */
const CLIENT_OF: Readonly<Record<string, string>> = { batch: ' (Search-R1)', verl: ' (verl)', skyrl: ' (SkyRL)' };

type Stages = Readonly<Record<string, Extract<StageOutcome<'flat'>, { readonly environment: object }>>>;

interface Interval {
  readonly low: number | null;
  readonly high: number | null;
}

/** A trial of scripts/trials.mjs. */
interface Trial {
  readonly reason?: string;
  readonly counts: Readonly<Record<string, number | string>>;
  readonly faults: Readonly<Record<string, number>>;
}

const percent = (share: number): string => `${Number((100 * share).toPrecision(2))} %`;
const points = (share: number): string => `${share < 0 ? '−' : '+'}${Math.abs(100 * share).toFixed(2)}`;

/** How a value, or a whole line, is written in a cell. A number without a format is written as it is. */
export const FORMATS: Readonly<Record<string, (value: never) => string>> = {
  ...figure,
  percent,
  seconds: (ms: number) => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`,
  points,
  passing: (share: number) => (share === 1 ? 'no filter' : percent(share)),
  /** Of cosines near 1 the distance says more than the digits. */
  cosine: (value: number) => (value > 0.9999 ? `1 − ${(1 - value).toExponential(0)}` : value.toFixed(4)),
  significance: (p: number) => (p < 0.001 ? '< 0.001' : figure.share(p)),
  interval: ({ low, high }: Interval) => ` (${figure.share(low!)} to ${figure.share(high!)})`,
  /** Without one where no question differs. */
  pointsInterval: ({ low, high }: Interval) =>
    low === null || high === null ? '' : ` (${points(low)} to ${points(high)})`,
  range: (values: readonly number[]) => values.map((value) => value.toFixed(2)).join(' to '),
  largest: (values: Readonly<Record<string, number>>) => figure.count(Math.max(...Object.values(values))),
  day: (date: string) => date.slice(0, 10),
  questions: (name: string) => name.split('/')[2]!,
  options: (text: string) => (text === '' ? 'none' : `\`${text}\``),
  program: (name: string) => (name === 'trawl' ? '`trawl prepare`' : 'a Python program'),
  shape: (name: string) => name.replace('-shape', ''),
  effort: (effort: number) => `, efSearch ${effort}`,
  measured: (over: string) => (over === 'http' ? 'over HTTP' : 'library alone'),
  fastestTextsPerS: ({ texts, fastestMs }: BenchEmbedResult['records'][number]) =>
    ((1000 * texts) / fastestMs).toFixed(1),
  gflopPerS: ({ kind, gflopPerS, ratioToFloat32 }: BenchProductsResult['records'][number]) =>
    gflopPerS === null
      ? ''
      : `${figure.count(gflopPerS)}${ratioToFloat32 === null || kind === 'float32' ? '' : ` (${ratioToFloat32.toFixed(2)})`}`,
  load: ({ load, engine }: ServeRecord) =>
    load === 'rollouts' ? `${loadName(load)}: ${rolloutServer(engine)}` : loadName(load),
  clientLoad: ({ load }: ServeRecord) => `${loadName(load)}${CLIENT_OF[load] ?? ''}`,
  loadRate: ({ load, queriesPerS }: ServeRecord) =>
    `${figure.rate(queriesPerS)} ${load === 'generator' ? 'requests' : 'queries'}/s`,
  /** A lone client is measured by its latency, one batch by its rate, and many clients by both. */
  rateAndTimes: ({ load, queriesPerS, p50Ms, p99Ms, maxMs }: ServeRecord) => {
    const rate = `${figure.rate(queriesPerS)} queries/s`;
    if (load.startsWith('lone')) return `p50 ${figure.ms(p50Ms)}, p99 ${figure.ms(p99Ms)}`;
    if (load === 'batch') return rate;
    return load === 'skyrl' ? `${rate}, slowest ${figure.ms(maxMs)}` : `${rate}, p99 ${figure.ms(p99Ms)}`;
  },
  cached: ({ prefilters, codes, vectors }: Readonly<Record<string, number>>) =>
    Object.entries({ prefilters, codes, rows: vectors })
      .map(
        ([name, share]) =>
          `${share === undefined ? 'unknown' : `${Math.min(100, Math.round(share * 100))} %`} of the ${name}`,
      )
      .join(', '),
  /** Faults, then other counts. */
  counted: ({ reason, faults, counts }: Trial) =>
    [
      ...(reason === undefined ? [] : [reason.split('\n', 1)[0]!]),
      ...Object.entries({ ...faults, ...counts }).map(
        ([what, count]) =>
          `${what} ${Number.isInteger(count) ? figure.count(count as number) : typeof count === 'number' ? count.toFixed(1) : count}`,
      ),
    ].join(', '),
  peaks: (peaks: MachinePeaks) =>
    [
      `memory ${figure.bytes(peaks.readBytesPerS)}/s`,
      `int8 products (${peaks.int8Isa}) ${figure.count(peaks.int8ProductsPerS! / 1e9)} × 10⁹/s`,
      `float32 products ${figure.count(peaks.float32ProductsPerS! / 1e9)} × 10⁹/s`,
      ...threadsInWords(peaks),
    ].join(', '),
  engines: (stages: Stages) =>
    [...new Set(Object.values(stages).flatMap(({ environment }) => environment.engines))]
      .filter((engine) => !engine.startsWith('trawl'))
      .join('; '),
  stageSeconds: (stages: Stages) =>
    Object.entries(stages)
      .map(([stage, { seconds }]) => `${stage} ${figure.count(seconds)} s`)
      .join(', '),
};
