import { ALL_STAGES, type AllResult, resultOf } from '../all/all-result.ts';
import type { BenchEmbedResult } from '../embed/bench-embed.ts';
import type { BenchFlatResult } from '../flat/bench-flat.ts';
import type { FlatRecord } from '../flat/flat-case.ts';
import { approximateCells } from '../report/approximate-cells.ts';
import * as figure from '../report/figures.ts';
import { loadName, rolloutServer } from '../report/load-names.ts';
import { threadsInWords } from '../report/threads-in-words.ts';
import type { BenchServeResult } from '../serve/bench-serve.ts';
import type { ServeRecord } from '../serve/serve-case.ts';
import { rule, type TableMaker } from './table-maker.ts';

/** Tables of a file of `trawl bench all`. A stage that it lacks has a table without lines. */
type AllTable = TableMaker<AllResult>;

/** Where and when a file was measured, and how busy the machine was. */
export const machine: AllTable = (all) => {
  const stages = ALL_STAGES.flatMap((stage) => {
    const outcome = all.stages[stage];
    return outcome !== undefined && 'result' in outcome ? [{ stage, ...outcome }] : [];
  });
  const [first] = stages;
  if (first === undefined) return [['what', 'measured'], rule(2, 2)];
  const { date, processor, cores, memoryBytes, loadBefore, node } = first.environment;
  const { environment, peaks } = resultOf(all, 'machine') ?? {};
  const peak = (name: string, rate: number | null): string[] =>
    rate === null ? [] : [`${name} ${figure.count(rate / 1e9)} × 10⁹/s`];
  return [
    ['what', 'measured'],
    rule(2, 2),
    ['day', date.slice(0, 10)],
    ['machine', `${processor}, ${cores} cores (${all.threads} used), ${figure.bytes(memoryBytes)}, Node.js ${node}`],
    ...(environment === undefined ? [] : [['instruction set of searches', environment.isa]]),
    ...(peaks === undefined || peaks === null
      ? []
      : [
          [
            'peaks of the machine',
            [
              `memory ${figure.bytes(peaks.readBytesPerS)}/s`,
              ...peak(
                `int8 products${peaks.int8Isa === undefined ? '' : ` (${peaks.int8Isa})`}`,
                peaks.int8ProductsPerS,
              ),
              ...peak('float32 products', peaks.float32ProductsPerS),
              ...threadsInWords(peaks),
            ].join(', '),
          ],
        ]),
    ['load before the first stage', loadBefore.toFixed(1)],
    [
      'compared with',
      [
        ...new Set(
          stages.flatMap(({ environment: { engines } }) => engines.filter((name) => !name.startsWith('trawl'))),
        ),
      ].join('; '),
    ],
    ['stages', stages.map(({ stage, seconds }) => `${stage} ${figure.count(seconds)} s`).join(', ')],
  ];
};

interface FlatEngines {
  readonly records: readonly FlatRecord[];
  readonly others: readonly string[];
  readonly counts: readonly number[];
  of(engine: string, queries: number): FlatRecord | undefined;
}

function flatEngines(all: AllResult): FlatEngines {
  return enginesOf(resultOf(all, 'flat')?.records ?? []);
}

function enginesOf(records: readonly FlatRecord[]): FlatEngines {
  return {
    records,
    others: [...new Set(records.map(({ engine }) => engine))].filter((engine) => engine !== 'trawl'),
    counts: [...new Set(records.map(({ queries }) => queries))],
    of: (engine, queries) => records.find((record) => record.engine === engine && record.queries === queries),
  };
}

/** Times by queries at once, and how many times Trawl's the others take. */
export const exactSearch: AllTable = (all) => {
  const { others, counts, of } = flatEngines(all);
  const header = ['queries at once', 'Trawl', ...others.flatMap((engine) => [engine, `${engine} takes`])];
  return [
    header,
    rule(header.length, 0),
    ...counts.map((queries) => [
      String(queries),
      figure.ms(of('trawl', queries)!.medianMs),
      ...others.flatMap((engine) => {
        const record = of(engine, queries);
        return record === undefined ? ['', ''] : [figure.ms(record.medianMs), figure.times(record.ratioToTrawl)];
      }),
    ]),
  ];
};

/** Times beside FAISS alone. */
export const searchLead: AllTable = (all) => searchLeads({ records: resultOf(all, 'flat')?.records ?? [] });

/** The same of a result of `trawl bench flat`. */
export const searchLeads: TableMaker<Pick<BenchFlatResult, 'records'>> = ({ records }) => {
  const { counts, of } = enginesOf(records);
  return [
    ['queries at once', 'Trawl', 'FAISS', 'Trawl is faster by'],
    rule(4, 0),
    ...counts.flatMap((queries) => {
      const [own, faiss] = [of('trawl', queries)!, of('faiss', queries)];
      return faiss === undefined
        ? []
        : [[String(queries), figure.ms(own.medianMs), figure.ms(faiss.medianMs), figure.times(faiss.ratioToTrawl)]];
    }),
  ];
};

/** Trawl's products a second and rescored rows, and the memory of every engine. */
export const exactSearchMemory: AllTable = (all) => {
  const { others, counts, of } = flatEngines(all);
  const header = ['queries at once', 'M dot products/s', 'rescored: median, p95, most', 'memory: Trawl', ...others];
  return [
    header,
    rule(header.length, 0),
    ...counts.map((queries) => {
      const own = of('trawl', queries)!;
      const rescored = [own.candidatesMedian, own.candidatesP95, own.candidatesMax];
      return [
        String(queries),
        figure.rate(own.dotsPerS / 1e6),
        rescored.map((rows) => (rows === null ? '' : figure.count(rows))).join(', '),
        ...['trawl', ...others].map((engine) => {
          const record = of(engine, queries);
          return record === undefined ? '' : figure.bytes(record.residentBytes);
        }),
      ];
    }),
  ];
};

export const encoder: AllTable = (all) => encoders({ records: resultOf(all, 'embed')?.records ?? [] });

/** The same of a result of `trawl bench embed`. */
export const encoders: TableMaker<Pick<BenchEmbedResult, 'records'>> = ({ records }) => [
  [
    ...['engine', 'passages/s, median (fastest)', '× baseline', 'GFLOP/s', 'query p50', 'query p99', 'memory'],
    'smallest cosine with the baseline',
  ],
  rule(8),
  ...records.map((record) => [
    `${record.engine} ${record.precision}`,
    `${record.textsPerS.toFixed(1)} (${((1000 * record.texts) / record.fastestMs).toFixed(1)})`,
    record.ratioToBaseline === null ? '' : record.ratioToBaseline.toFixed(2),
    record.gflopPerS === null ? '' : record.gflopPerS.toFixed(0),
    figure.ms(record.queryP50Ms),
    figure.ms(record.queryP99Ms),
    figure.bytes(record.residentBytes),
    record.cosineToBaseline === null ? '' : cosine(record.cosineToBaseline),
  ]),
];

/** Of cosines near 1 the distance says more than the digits. */
function cosine(value: number): string {
  return value > 0.9999 ? `1 − ${(1 - value).toExponential(0)}` : value.toFixed(4);
}

export const indexBuilding: AllTable = (all) => [
  ['passages', 'encoder', 'time', 'passages/s', 'index', 'most memory', 'writing as many bytes'],
  rule(7, 2),
  ...(resultOf(all, 'index')?.records ?? []).map((record) => [
    `${figure.count(record.rows)} × ${record.dimension}`,
    record.encoder,
    `${record.seconds.toFixed(1)} s`,
    figure.count(record.passagesPerS),
    figure.bytes(record.indexBytes),
    figure.bytes(record.peakMemoryBytes),
    record.diskSeconds === null ? '' : `${record.diskSeconds.toFixed(1)} s`,
  ]),
];

/** A line for each load; `rollouts` has one for each server of Trawl. */
export const servers: AllTable = (all) => {
  const { baseline, records } = serverLines(resultOf(all, 'serve')?.records ?? []);
  const header = [
    'load',
    'Trawl',
    ...(baseline === undefined ? [] : [baseline, 'Trawl is better by']),
    'failed, wrong',
  ];
  return [
    header,
    rule(header.length),
    ...records.map(({ own, other }) => {
      const name = loadName(own.load);
      return [
        own.load === 'rollouts' ? `${name}: ${rolloutServer(own.engine)}` : name,
        rateAndTimes(own),
        ...(baseline === undefined ? [] : beside(own, other)),
        `${own.errors}, ${own.wrong}`,
      ];
    }),
  ];
};

/** The loads of the projects that train agents, beside the server that they use. */
export const serverLead: AllTable = (all) => serverLoads({ records: resultOf(all, 'serve')?.records ?? [] });

/** The same of a result of `trawl bench serve`. */
export const serverLoads: TableMaker<Pick<BenchServeResult, 'records'>> = ({ records }) => [
  ['load', 'Trawl', 'that server', 'Trawl is better by'],
  rule(4),
  ...serverLines(records)
    .records.filter(({ own }) => own.load in CLIENT_OF)
    .map(({ own, other }) => [
      `${loadName(own.load)}${CLIENT_OF[own.load as keyof typeof CLIENT_OF]}`,
      rateAndTimes(own),
      ...beside(own, other),
    ]),
];

/** Whose clients send such a load. */
const CLIENT_OF = { lone: '', batch: ' (Search-R1)', verl: ' (verl)', skyrl: ' (SkyRL)' } as const;

function serverLines(records: readonly ServeRecord[]): {
  readonly baseline: string | undefined;
  readonly records: readonly { readonly own: ServeRecord; readonly other: ServeRecord | undefined }[];
} {
  const baseline = records.find(({ engine }) => !engine.startsWith('trawl'))?.engine;
  return {
    baseline,
    records: records
      .filter(({ engine }) => engine.startsWith('trawl'))
      .map((own) => ({ own, other: records.find(({ engine, load }) => engine === baseline && load === own.load) })),
  };
}

function beside(own: ServeRecord, other: ServeRecord | undefined): string[] {
  return [
    other === undefined ? '' : rateAndTimes(other),
    own.ratioToBaseline === null ? '' : figure.times(own.ratioToBaseline),
  ];
}

/** A lone client is measured by its latency, one batch by its rate, and many clients by rate and latencies. */
function rateAndTimes({ load, queriesPerS, p50Ms, p99Ms, maxMs }: ServeRecord): string {
  const rate = `${figure.rate(queriesPerS)} queries/s`;
  if (load.startsWith('lone')) return `p50 ${figure.ms(p50Ms)}, p99 ${figure.ms(p99Ms)}`;
  if (load === 'batch') return rate;
  return load === 'skyrl' ? `${rate}, slowest ${figure.ms(maxMs)}` : `${rate}, p99 ${figure.ms(p99Ms)}`;
}

export const recallByLatency: AllTable = (all) => [
  ['engine', 'efSearch', 'recall', 'p50', 'p99', 'queries/s, all at once', 'made in', 'memory'],
  rule(8),
  ...(resultOf(all, 'approximate')?.records ?? []).map(approximateCells),
];

export const endToEnd: AllTable = (all) => [
  ['engine', 'mode', 'measured', 'recall@10', 'p50', 'p99', 'memory'],
  rule(7, 3),
  ...(resultOf(all, 'questions')?.records ?? []).map((record) => [
    record.effort === undefined || record.effort === null
      ? record.engine
      : `${record.engine}, efSearch ${record.effort}`,
    record.mode,
    record.over === 'http' ? 'over HTTP' : 'library alone',
    figure.share(record.recallAt10),
    figure.ms(record.p50Ms),
    figure.ms(record.p99Ms),
    record.residentBytes === null ? '' : figure.bytes(record.residentBytes),
  ]),
];
