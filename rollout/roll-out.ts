import { throwIfCancelled } from '../src/abort.ts';
import { asTrawlError, TrawlError } from '../src/errors.ts';
import type { IndexState, RolloutServer } from './rollout-server.ts';

/** Questions that decide whether a server that was swapped stays so. */
export interface Probe<Answers> {
  ask(server: RolloutServer): Promise<Answers>;
  /** Why the answers of the new index are refused; empty if they are not. `before` is undefined if no server had the old index. */
  refusals(before: Answers | undefined, now: Answers): readonly string[];
  /** Figures for the report. */
  figures(before: Answers | undefined, now: Answers): Readonly<Record<string, number | null>>;
}

export interface RolloutOptions<Answers> {
  readonly servers: readonly RolloutServer[];
  /** The folder to open, as the servers see it. Default: that with which each was started. */
  readonly to: string | undefined;
  /** Go back to this generation, or with `previous` to that before the current one. */
  readonly back: { readonly generation: string | undefined } | undefined;
  /** The only generation that may be opened. Default: any on which the servers agree. */
  readonly expected: string | undefined;
  readonly probe: Probe<Answers> | undefined;
  readonly dryRun: boolean;
  /** Leave the servers that were swapped before a failure as they are. */
  readonly stay: boolean;
  /** Go on where the old index cannot be opened again, because the new one took its folder. */
  readonly oneWay: boolean;
  readonly signal: AbortSignal;
  readonly onStep: (text: string) => void;
}

const SERVER_STATES = ['current', 'planned', 'swapped', 'failed', 'taken back', 'not taken back', 'untouched'] as const;

export interface ServerReport {
  readonly url: string;
  state: (typeof SERVER_STATES)[number];
  readonly before: string | null;
  /** The folder of the index before, which is the way back. */
  readonly from: string | null;
  readonly folder: string;
  seconds: number | null;
  figures: Readonly<Record<string, number | null>> | null;
  problem: string | null;
}

export interface RolloutReport {
  /** `done`: all servers answer with the generation, which `current` says of all before. */
  readonly state: 'done' | 'current' | 'planned' | 'taken back' | 'stopped';
  readonly generation: string;
  readonly servers: readonly ServerReport[];
}

interface Planned {
  readonly server: RolloutServer;
  readonly state: IndexState;
  /** The folder that the server shall open. */
  readonly folder: string;
  readonly report: ServerReport;
}

/**
 * Swaps the index of one server after another. Each must be ready, answer with the new index and pass the probe before the next one is
 * swapped. At a failure all that were swapped are taken back. Stopped or repeated, the same call completes the rest.
 *
 * @throws TrawlError ROLLOUT_FAILED before any server was changed; CANCELLED.
 */
export async function rollOut<Answers>(options: RolloutOptions<Answers>): Promise<RolloutReport> {
  const plans = await planAll(options);
  const generation = targetOf(plans);
  if (options.expected !== undefined && generation !== options.expected) {
    throw failed(`The servers find generation ${generation}, not ${options.expected}. No server was changed.`);
  }
  const todo = plans.filter(({ report }) => report.state === 'planned');
  const servers = plans.map(({ report }) => report);
  if (options.dryRun) return { state: 'planned', generation, servers };
  if (todo.length === 0) return { state: 'current', generation, servers };
  if (!options.oneWay) checkWayBack(todo);
  const { probe, signal, onStep } = options;
  for (const { report } of todo) report.state = 'untouched';
  const before = probe === undefined ? undefined : await probe.ask(oldest(plans).server);
  const swapped: Planned[] = [];
  try {
    for (const plan of todo) {
      throwIfCancelled(signal);
      // The others answer while this one opens its index.
      for (const { server } of plans) await server.requireReady(signal);
      const begun = performance.now();
      onStep(`${plan.server.url}: opening ${plan.folder}`);
      swapped.push(plan);
      plan.report.state = 'failed';
      await plan.server.reload(plan.folder, { generation, snapshot: plan.state.next.snapshot }, signal);
      await plan.server.requireReady(signal);
      plan.report.seconds = Number(((performance.now() - begun) / 1000).toFixed(3));
      if (probe !== undefined) {
        const now = await probe.ask(plan.server);
        plan.report.figures = probe.figures(before, now);
        const refusals = probe.refusals(before, now);
        if (refusals.length > 0) throw new TrawlError('ROLLOUT_FAILED', `${plan.server.url}: ${refusals.join(' ')}`);
      }
      plan.report.state = 'swapped';
      onStep(`${plan.server.url}: answers with generation ${generation}`);
    }
  } catch (error) {
    const { code, message } = asTrawlError(error);
    if (code === 'CANCELLED' || code === 'INTERNAL') throw error;
    swapped.at(-1)!.report.problem ??= message;
    onStep(`${message} [${code}]`);
    if (options.stay) return { state: 'stopped', generation, servers };
    return { state: await takeBack(swapped, options), generation, servers };
  }
  return { state: 'done', generation, servers };
}

/** Asks all servers, and reports all problems at once. */
async function planAll<Answers>({ servers, to, back, signal }: RolloutOptions<Answers>): Promise<Planned[]> {
  const states = await allOf(servers, async (server) => {
    await server.requireReady(signal);
    return server.state(to, signal);
  });
  const generation = back === undefined ? undefined : (back.generation ?? previousOf(servers, states));
  return allOf(servers, async (server) => {
    const first = states[servers.indexOf(server)]!;
    const earlier = first.opened.findLast((opened) => opened.generation === generation);
    const isThere = generation !== undefined && first.generation === generation;
    const folder = generation === undefined ? (to ?? first.folderAtStart ?? first.next.folder) : earlier?.folder;
    if (folder === undefined) {
      throw failed(
        `${server.url} has not opened generation ${generation} since its start. Name the folder that has it with --to.`,
      );
    }
    const state = generation === undefined ? first : await server.state(folder, signal);
    const { next, opened } = state;
    if (next.generation === null) throw failed(`${server.url} finds no index in ${folder}: ${next.problem}`);
    if (generation !== undefined && next.generation !== generation) {
      throw failed(
        `${server.url}: ${folder} has generation ${next.generation} now, not ${generation}. Name the folder that has it with --to.`,
      );
    }
    const current = opened.at(-1);
    const isSame = state.generation === next.generation && (isThere || current?.snapshot === next.snapshot);
    const report: ServerReport = {
      url: server.url,
      state: isSame ? 'current' : 'planned',
      before: state.generation,
      from: current?.folder ?? null,
      folder,
      seconds: null,
      figures: null,
      problem: null,
    };
    return { server, state, folder, report };
  });
}

/** The generation before the current one, if the servers agree on both. */
function previousOf(servers: readonly RolloutServer[], states: readonly IndexState[]): string {
  const found = states.map(
    ({ opened, generation }) => opened.findLast((each) => each.generation !== generation)?.generation,
  );
  const missing = found.indexOf(undefined);
  if (missing >= 0) {
    throw failed(
      `${servers[missing]!.url} has opened no other generation since its start. Name the folder that has it with --to.`,
    );
  }
  const currents = new Set(states.map(({ generation }) => generation));
  if (currents.size === 1 && new Set(found).size === 1) return found[0]!;
  const each = states.map(({ generation }, i) => `${servers[i]!.url} has ${generation}, before ${found[i]}`).join('; ');
  throw failed(`The servers do not agree on what to go back to: ${each}. Name it with --generation.`);
}

/** The one generation that all servers find. @throws TrawlError ROLLOUT_FAILED. */
function targetOf(plans: readonly Planned[]): string {
  const found = new Set(plans.map(({ state }) => state.next.generation!));
  if (found.size === 1) return [...found][0]!;
  const each = plans
    .map(({ server, folder, state }) => `${server.url} finds ${state.next.generation} in ${folder}`)
    .join('; ');
  throw failed(`The servers do not have the same index: ${each}. Copy it to all of them first (trawl sync).`);
}

function checkWayBack(plans: readonly Planned[]): void {
  const lost = plans.find(({ state, report }) => report.from === state.next.folder);
  if (lost === undefined) return;
  throw failed(
    `${lost.server.url} has the old index from ${lost.report.from}, where the new one is now, so that it could not go back. Keep both, as ` +
      '`trawl sync` does, or accept this with --one-way.',
  );
}

/** A server with the index before the rollout, if there is one. */
function oldest(plans: readonly Planned[]): Planned {
  return plans.find(({ report }) => report.state === 'untouched')!;
}

async function takeBack<Answers>(
  swapped: readonly Planned[],
  { onStep, signal }: RolloutOptions<Answers>,
): Promise<RolloutReport['state']> {
  let state: RolloutReport['state'] = 'taken back';
  for (const { server, report, state: before } of [...swapped].reverse()) {
    const opened = before.opened.at(-1);
    try {
      if (opened === undefined) throw failed(`${server.url} does not say what it had open before.`);
      await server.reload(opened.folder, { ...opened, isBack: true }, signal);
      report.state = 'taken back';
      onStep(`${server.url}: answers with generation ${opened.generation} again, from ${opened.folder}`);
    } catch (error) {
      throwIfCancelled(signal);
      state = 'stopped';
      report.state = 'not taken back';
      report.problem = [report.problem, (error as Error).message].filter((text) => text !== null).join(' ');
      onStep(`${server.url}: not taken back: ${(error as Error).message}`);
    }
  }
  return state;
}

/** Results in order. @throws TrawlError ROLLOUT_FAILED with the messages of all that failed. */
async function allOf<T>(servers: readonly RolloutServer[], work: (server: RolloutServer) => Promise<T>): Promise<T[]> {
  const results = await Promise.allSettled(servers.map(work));
  const problems = results.flatMap((result) => (result.status === 'rejected' ? [asTrawlError(result.reason)] : []));
  const other = problems.find(({ code }) => code !== 'ROLLOUT_FAILED');
  if (other !== undefined) throw other;
  if (problems.length > 0) throw failed(`${problems.map(({ message }) => message).join(' ')} No server was changed.`);
  return results.map((result) => (result as PromiseFulfilledResult<T>).value);
}

function failed(message: string): TrawlError {
  return new TrawlError('ROLLOUT_FAILED', message);
}
