import type { ExpectedSearch } from '../../evaluation/speed/expected-search.ts';
import type { SpeedTrial } from '../../evaluation/speed/speed-trial.ts';
import type { MachineFacts } from '../environment.ts';

/** Requests of one size to a server over the index. Times are medians but for the fastest and slowest. */
export interface SizeRequests {
  readonly queries: number;
  readonly runs: number;
  /** From the request to the parsed reply. Null if it took longer than `longerThanMs`; then there are no other figures. */
  readonly ms: number | null;
  /** The search alone, as the server says. */
  readonly searchMs?: number;
  /** Bytes that the server read from the disk. */
  readonly readBytes?: number;
  readonly fastestMs?: number;
  readonly slowestMs?: number;
  readonly longerThanMs?: number;
}

/** A server with some amount of memory. */
export interface SizeState {
  readonly requests: readonly SizeRequests[];
  /** Queries whose hits and scores equalled those of a scan of all rows. */
  readonly checkedQueries: number;
  /** Memory of the server's process: its own, and that of mapped files. */
  readonly anonymousBytes: number;
  readonly mappedBytes: number;
  /** The share of the files that was in the page cache at the end; absent without `fincore`. */
  readonly cached: { readonly prefilters?: number; readonly codes?: number; readonly vectors?: number };
  readonly loadBefore: number;
}

/** What `npm run check -- size --out FILE` writes. */
export interface SizeResult {
  readonly environment: Omit<MachineFacts, 'engines'>;
  readonly rows: number;
  readonly dimension: number;
  readonly k: number;
  readonly bytes: {
    readonly rows: number;
    readonly codes: number;
    readonly prefilters: number;
    readonly passages: number;
  };
  readonly steps: {
    readonly rows: { readonly seconds: number; readonly loadBefore: number };
    readonly index: {
      readonly seconds: number;
      readonly peakBytes: number;
      readonly stageMs: Readonly<Record<'read' | 'vectors' | 'finish', number>>;
      readonly loadBefore: number;
    };
    readonly scan: { readonly seconds: number };
    readonly plan: {
      readonly residentBytes: number;
      readonly trial: SpeedTrial;
      readonly searches: readonly ExpectedSearch[];
      readonly loadBefore: number;
    };
    readonly open: Readonly<Record<'cold' | 'warm', { readonly readyMs: number; readonly firstMs: number }>>;
    readonly memory: SizeState;
    readonly prefilter: SizeState & { readonly limitBytes: number };
  };
}
