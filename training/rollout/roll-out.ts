import { throwIfCancelled } from '../../src/base/abort.ts';
import { asTrawlError, TrawlError } from '../../src/base/errors.ts';
import type { IndexState, RolloutServer } from './rollout-server.ts';

/** Questions that decide whether a server that was swapped stays so. */
export interface Probe<Answers> {
  ask(server: RolloutServer): Promise<Answers>;
  /** Why the answers of the new index are refused; empty if they are not. `before` is undefined if no server had the old index. */
  refusals(before: Answers | undefined, now: Answers): readonly string[];
  figures(before: Answers | undefined, now: Answers): Readonly<Record<string, number | null>>;
}

export interface RolloutOptions<Answers> {
  readonly servers: readonly RolloutServer[];
  /** The folder to open, as the servers see it. Default: the folder that each was started with. */
  readonly to: string | undefined;
  /** Go back to this generation. Undefined: to the generation before the current one. */
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

interface ServerReport {
  readonly url: string;
  state: 'current' | 'planned' | 'swapped' | 'failed' | 'taken back' | 'not taken back' | 'untouched';
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
  if (!options.oneWay) await checkWayBack(todo, options.signal);
  if (options.dryRun) return { state: 'planned', generation, servers };
  const { probe, signal, onStep } = options;
  const before = await firstAnswers(plans, todo[0], options);
  if (todo.length === 0) return { state: 'current', generation, servers };
  for (const { report } of todo) report.state = 'untouched';
  const swapped: Planned[] = [];
  // The server that is asked or swapped, which is the one to blame for a failure.
  let active: Planned | undefined;
  try {
    for (const plan of todo) {
      throwIfCancelled(signal);
      // The others answer while this one opens its index.
      for (const each of plans) {
        active = each;
        await each.server.requireReady(signal);
      }
      active = plan;
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
    if (swapped.length === 0) throw refused(message);
    if (active !== undefined) active.report.problem ??= message;
    onStep(`${message} [${code}]`);
    if (options.stay) return { state: 'stopped', generation, servers };
    return { state: await takeBack(swapped, options), generation, servers };
  }
  return { state: 'done', generation, servers };
}

/**
 * The answers of a server with the old index, if there is one. Servers that have the new index already must pass, too: an earlier run
 * may have left them so although it refused the index.
 */
async function firstAnswers<Answers>(
  plans: readonly Planned[],
  oldest: Planned | undefined,
  { probe, onStep, signal }: RolloutOptions<Answers>,
): Promise<Answers | undefined> {
  if (probe === undefined) return undefined;
  try {
    const before = oldest === undefined ? undefined : await probe.ask(oldest.server);
    if (oldest === undefined) {
      onStep('No server has the old index, so the answers of the old and the new index cannot be compared.');
    }
    for (const { server, report } of plans.filter(({ report }) => report.state === 'current')) {
      const now = await probe.ask(server);
      report.figures = before === undefined ? null : probe.figures(before, now);
      const problems = probe.refusals(before, now);
      if (problems.length > 0) throw failed(`${server.url} has the new index already: ${problems.join(' ')}`);
    }
    return before;
  } catch (error) {
    throwIfCancelled(signal);
    const failure = asTrawlError(error);
    throw failure.code === 'ROLLOUT_FAILED' ? refused(failure.message) : failure;
  }
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
        `${server.url} has not opened generation ${generation} since its start. Name the folder that has it with --to, without --back.`,
      );
    }
    const state = generation === undefined ? first : await server.state(folder, signal);
    const { next, opened } = state;
    if (next.generation === null) throw failed(`${server.url} finds no index in ${folder}: ${next.problem}`);
    if (generation !== undefined && next.generation !== generation) {
      throw failed(
        `${server.url}: ${folder} has generation ${next.generation} now, not ${generation}. Name the folder that has it with --to, without --back.`,
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
    throw refused(
      `${servers[missing]!.url} has opened no other generation since its start. Name the folder that has it with --to, without --back.`,
    );
  }
  const currents = new Set(states.map(({ generation }) => generation));
  if (currents.size === 1 && new Set(found).size === 1) {
    // After a way back, the generation before the current one is the one that was left, perhaps because it was refused.
    const repeated = states.findIndex(({ opened, generation }) => {
      const last = opened.findLastIndex((each) => each.generation !== generation);
      return opened.slice(0, last).some((each) => each.generation === generation);
    });
    if (repeated < 0) return found[0]!;
    throw refused(
      `${servers[repeated]!.url} went back to its generation ${states[repeated]!.generation} before, from ${found[0]}, which may have ` +
        'been refused. Name the generation to open with --generation.',
    );
  }
  const each = states.map(({ generation }, i) => `${servers[i]!.url} has ${generation}, before ${found[i]}`).join('; ');
  throw refused(`The servers do not agree on what to go back to: ${each}. Name it with --generation.`);
}

/** The one generation that all servers find. @throws TrawlError ROLLOUT_FAILED. */
function targetOf(plans: readonly Planned[]): string {
  const found = new Set(plans.map(({ state }) => state.next.generation!));
  if (found.size === 1) return [...found][0]!;
  const each = plans
    .map(({ server, folder, state }) => `${server.url} finds ${state.next.generation} in ${folder}`)
    .join('; ');
  throw refused(`The servers do not have the same index: ${each}. Copy it to all of them first (trawl sync).`);
}

/** The folder of the old index must still have it: `trawl sync` moves a plain folder, and removes old copies. */
async function checkWayBack(plans: readonly Planned[], signal: AbortSignal): Promise<void> {
  for (const { server, report, state } of plans) {
    const open = state.opened.at(-1);
    if (report.from === null || open === undefined) continue;
    const has = async (folder: string): Promise<boolean> => {
      const { next } = await server.state(folder, signal);
      return next.generation === open.generation && (open.snapshot === null || next.snapshot === open.snapshot);
    };
    if (await has(report.from)) continue;
    const moved = `${report.from}.copies/original`;
    const place = (await has(moved))
      ? `It is in ${moved} now: accept this with --one-way, and go back with --to ${moved}.`
      : 'Keep both, as `trawl sync` does, or accept this with --one-way.';
    throw refused(
      `${server.url} has the old index from ${report.from}, where it no longer is, so that it could not go back. ${place}`,
    );
  }
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

function refused(message: string): TrawlError {
  return failed(`${message} No server was changed.`);
}

function failed(message: string): TrawlError {
  return new TrawlError('ROLLOUT_FAILED', message);
}
