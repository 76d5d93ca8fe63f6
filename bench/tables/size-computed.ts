import type { SizeResult } from './size-figures.ts';

/** Searches on two cores, from which those on more cores are computed. */
interface TwoCores {
  readonly isa: string;
  /** Milliseconds of a search over all rows, by queries at once. */
  readonly ms: ReadonlyMap<number, number>;
  readonly readBytesPerS: number;
  readonly cores: readonly number[];
  readonly measured: boolean;
}

const CORES = [2, 8, 32, 112];

/** Of bench/results/bench-medium.json: median times over a million rows on two cores with AVX-512 VNNI, and what they read at most. */
const VNNI = { rows: 1_000_000, ms: { 1: 20.48, 16: 31.48, 64: 81.39, 512: 521.7 }, readBytesPerS: 67.1e9 } as const;
const QUERIES = [1, 16, 64, 512] as const;

/**
 * Of the same search on two cores of an Intel Emerald Rapids with AMX (bench/search.md, "AMX": through the prefilter, with 512 queries by the
 * codes alone, and with VNNI for one query). How fast they read is not known, so their memory counts as that of the processor with VNNI, and two cores are left out.
 */
const AMX = {
  rows: 1_000_000,
  ms: { 1: 12.3, 16: 20.1, 64: 67.5, 512: 285 },
  readBytesPerS: VNNI.readBytesPerS,
} as const;

/** Two thirds of eight channels of DDR5-4800 (by the data sheet 307 GB/s), the memory of a socket of 56 cores. */
const SOCKET = { cores: 56, readBytesPerS: 205e9 };

/**
 * Expected times on more cores; nobody measured them. The processor's part is divided by the multiple of the cores. No search is faster than
 * one read of the prefilters, whose rate grows with the cores up to that of the sockets.
 */
export function sizeComputed({ rows, bytes, steps: { memory, plan } }: SizeResult): string[][] {
  // A request that took longer than its limit has no time.
  const measured = new Map(memory.requests.flatMap(({ queries, ms }) => (ms === null ? [] : [[queries, ms] as const])));
  const counts = QUERIES.filter((queries) => measured.has(queries));
  const here: TwoCores = {
    isa: plan.trial.isa,
    ms: measured,
    readBytesPerS: plan.trial.readBytesPerS,
    cores: CORES,
    measured: true,
  };
  const scaled = (isa: string, base: typeof VNNI | typeof AMX, cores: readonly number[]): TwoCores => ({
    isa,
    ms: new Map(QUERIES.map((queries) => [queries, (base.ms[queries] * rows) / base.rows])),
    readBytesPerS: base.readBytesPerS,
    cores,
    measured: false,
  });
  const bases = [here, scaled('avx512-vnni', VNNI, CORES), scaled('amx', AMX, CORES.slice(1))];
  const most = counts.at(-1) ?? 0;
  const lines = bases.flatMap((base) =>
    base.cores.map((cores) => {
      const rate = readRate(base, cores);
      const times = counts.map((queries) =>
        cores === 2 && base.measured
          ? base.ms.get(queries)!
          : Math.max((base.ms.get(queries)! * 2) / cores, (bytes.prefilters / rate) * 1000),
      );
      return [
        String(cores),
        `${base.isa}${cores === 2 && base.measured ? ', measured' : ''}`,
        `${Math.round(rate / 1e9)} GB/s`,
        ...times.map(seconds),
        Math.round(most / (times.at(-1)! / 1000)).toLocaleString('en-US'),
      ];
    }),
  );
  return [
    [
      ...['cores', 'instructions', 'memory'],
      ...counts.map((queries) => (queries === 1 ? '1 query' : `${queries} queries`)),
      `queries/s at ${most}`,
    ],
    ['---:', '---', ...Array<string>(counts.length + 2).fill('---:')],
    ...lines,
  ];
}

function readRate({ readBytesPerS }: TwoCores, cores: number): number {
  const sockets = Math.ceil(cores / SOCKET.cores);
  return Math.min((readBytesPerS * cores) / 2, SOCKET.readBytesPerS * sockets);
}

/** Two significant digits say as much as a computed time can. */
function seconds(ms: number): string {
  const value = ms / 1000;
  return `${value < 100 ? value.toPrecision(2) : value.toFixed(0)} s`;
}
