import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../helpers/seeded-random.ts';
import { expectedAnswers } from '../soak/expected-answers.ts';
import { type Asking, askRetrieve, GoodTally, goodClient } from '../soak/good-client.ts';
import { type SoakServer, type SoakServerOptions, startSoakServer } from '../soak/soak-server.ts';

export interface TrialOptions {
  readonly index: string;
  /** Another one, whose answers to the same queries are others. */
  readonly otherIndex: string;
  /** For links, copies and logs; it goes with the run. */
  readonly folder: string;
  /** Of each trial under load. */
  readonly seconds: number;
  /** Opened and closed. */
  readonly connections: number;
  /** Waits a minute and more until clients are cut that send too slowly. */
  readonly patient: boolean;
  /** A line now and then, for a person. */
  onProgress?(line: string): void;
}

/** What was done and seen, by name, in the order to be told. */
export type Counts = Readonly<Record<string, number | string>>;

/** What a trial found. Anything in `faults` is a failure. */
export interface Found {
  readonly counts: Counts;
  readonly faults: Readonly<Record<string, number>>;
}

export interface TrialResult extends Found {
  readonly name: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** Why it was skipped, or what ended it. */
  readonly reason?: string;
}

/** One thing that a server is put through. It throws `Skip` where this machine cannot do it. */
export interface Trial {
  readonly name: string;
  run(options: TrialOptions): Promise<Found>;
}

export class Skip extends Error {}

/** Runs trials one after another; none throws. */
export async function runTrials(
  trials: readonly Trial[],
  options: TrialOptions,
  onResult: (result: TrialResult) => void = () => undefined,
): Promise<TrialResult[]> {
  const results: TrialResult[] = [];
  for (const trial of trials) {
    const result = await resultOf(trial, options);
    results.push(result);
    onResult(result);
  }
  return results;
}

async function resultOf({ name, run }: Trial, options: TrialOptions): Promise<TrialResult> {
  try {
    const { counts, faults } = await run(options);
    return { name, outcome: Object.keys(faults).length === 0 ? 'passed' : 'failed', counts, faults };
  } catch (error) {
    const outcome = error instanceof Skip ? 'skipped' : 'failed';
    const reason = error instanceof Skip ? error.message : String((error as Error).stack ?? error);
    return { name, outcome, counts: {}, faults: {}, reason };
  }
}

/** Faults by name, with how often. */
export class Faults {
  readonly counts: Record<string, number> = {};

  add(what: string, count = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + count;
  }
}

export interface LoadOptions {
  readonly server?: SoakServerOptions;
  readonly queries: readonly string[];
  /** Default: POST /retrieve, with the answers that the index gives outside of a server. */
  readonly asking?: Asking;
  /** Whether refusals with 503 and Retry-After are right; else they are faults. */
  readonly mayRefuse?: boolean;
  /** Runs beside the clients; the load lasts until it has ended, and `seconds` at least. */
  during(server: SoakServer, stopped: () => boolean): Promise<Found>;
  /** After the last answer, before the server is told to stop. */
  after?(server: SoakServer, tally: GoodTally): Promise<Found>;
}

export const LOAD_CLIENTS = 8;
const SIZES = [1, 1, 2, 3, 16];
const PROGRESS_MS = 10_000;

/** A real server with clients whose every answer is checked, while something is done to it. */
export async function underLoad(index: string, options: TrialOptions, load: LoadOptions): Promise<Found> {
  const { queries, during, after } = load;
  const asking = load.asking ?? askRetrieve(await expectedAnswers(index, queries));
  const server = await startSoakServer(index, load.server ?? {});
  const tally = new GoodTally();
  const until = performance.now() + options.seconds * 1000;
  let over = false;
  const stopped = (): boolean => over || performance.now() >= until || !server.alive;
  const progress = setInterval(() => {
    const left = Math.max(0, Math.round((until - performance.now()) / 1000));
    options.onProgress?.(`${tally.answered} answers, ${tally.faults} faults, ${left} s left`);
  }, PROGRESS_MS);
  const clients = Array.from({ length: LOAD_CLIENTS }, (_, i) =>
    goodClient({
      port: server.port,
      asking,
      queries,
      tally,
      random: seededRandom(i + 1),
      sizes: SIZES,
      stopped: () => over || !server.alive,
    }),
  );
  let found: Found;
  let afterwards: Found = { counts: {}, faults: {} };
  try {
    found = await during(server, stopped);
    while (!stopped()) await sleep(50);
    over = true;
    await Promise.all(clients);
    if (server.alive && after !== undefined) afterwards = await after(server, tally);
  } finally {
    over = true;
    clearInterval(progress);
    if (!server.alive) tally.fault('the server died');
    const exit = await server.stop();
    if (exit !== 0) tally.fault(`exit ${exit}`);
  }
  if (tally.answered === 0) tally.fault('no answer');
  if (load.mayRefuse !== true && tally.refused > 0) tally.fault('refused with 503');
  return {
    counts: { answers: tally.answered, 'wrong or failed': tally.faults, ...found.counts, ...afterwards.counts },
    faults: { ...tally.wrong, ...found.faults, ...afterwards.faults },
  };
}

/** POST of a JSON body, default none; the status and the body of the answer. */
export async function post(url: string, body: object = {}): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

export const megabytes = (bytes: number): number => Math.round(bytes / 1e6);
