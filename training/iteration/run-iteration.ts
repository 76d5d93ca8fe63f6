import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { claimIteration, type IterationInputs } from './claim-iteration.ts';
import { type Gates, type Refusal, refusals, type TrialGates, trialRefusals } from './gates.ts';
import type { IterationStep, IterationSummary, IterationWork, StepFolders } from './iteration-work.ts';
import { type IterationsFolder, pruneIterations } from './iterations-folder.ts';
import { type Journal, type PublishedIteration, removeJournal, writeHistory, writeJournal } from './records.ts';
import { serveIteration } from './serve-iteration.ts';
import type { ServedIndex } from './served-index.ts';

/** How often an index is measured if what it is compared with changes meanwhile. */
const MAX_MEASUREMENTS = 4;

export interface IterationOptions {
  readonly folder: IterationsFolder;
  readonly inputs: IterationInputs;
  readonly work: IterationWork;
  readonly gates: Gates;
  readonly trialGates: TrialGates;
  readonly servers: readonly ServedIndex[];
  /** Iterations to keep, at least 2. Nothing is removed without servers: nobody can say what is in use. */
  readonly keep: number;
  readonly restart: boolean;
  /** The last step. Default: all, and publish. */
  readonly until?: IterationStep;
  readonly onStep: (step: IterationStep | 'publish', number: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Runs an iteration from its first unfinished step: makes the model and the index beside the one that is served, measures both, and
 * publishes the new one if the gates allow it.
 *
 * @throws TrawlError BUILD_LOCKED while another process runs one; BUILD_DIFFERS; RELOAD_FAILED; errors of the steps.
 */
export async function runIteration(options: IterationOptions): Promise<IterationSummary> {
  const lock = options.folder.lockIteration();
  try {
    return await new IterationRun(options).run();
  } catch (error) {
    if (!(error instanceof TrawlError) || error.code !== 'CANCELLED') throw error;
    // Whatever was stopped: the same command resumes.
    throw new TrawlError('CANCELLED', error.message, { details: { ...error.details, resumable: true }, cause: error });
  } finally {
    lock.release();
  }
}

class IterationRun {
  readonly #options: IterationOptions;
  #journal!: Journal;

  constructor(options: IterationOptions) {
    this.#options = options;
  }

  async run(): Promise<IterationSummary> {
    const { folder, inputs, work, gates, servers, until, restart, signal } = this.#options;
    const journal = await claimIteration(folder, inputs, { restart, signal });
    if (journal === undefined) return this.#current();
    this.#journal = journal;
    await this.#checkServers(this.#acceptedGenerations());
    if (until === undefined) {
      for (const server of servers) await server.checkReload((await server.facts(signal)).name, signal);
    }
    if (this.#journal.model === null) {
      this.#report('model');
      await this.#record({ model: await work.model(this.#folders(), this.#journal) });
    }
    if (until === 'model') return this.#summary('stopped');
    if (this.#journal.index === null) {
      const refused = await this.#try();
      if (refused.length > 0) return this.#summary('refused', { refusals: refused });
      if (until === 'triage') return this.#summary('stopped');
      this.#report('index');
      await this.#record({ index: await work.index(this.#folders(), this.#journal) });
    }
    await this.#noteChangedIndex();
    if (until === 'triage' || until === 'index') return this.#summary('stopped');
    for (let measured = 0; measured < MAX_MEASUREMENTS; measured++) {
      await this.#measure();
      const refused = refusals(this.#journal.measures!, gates);
      if (refused.length > 0 && !this.#isServed()) return this.#summary('refused', { refusals: refused });
      if (until === 'measures') return this.#summary('stopped');
      throwIfCancelled(signal);
      const published = await this.#publish();
      if (published === undefined) continue;
      return { ...published, servers: servers.map(({ url }) => url) };
    }
    throw new TrawlError(
      'CONFIG_INVALID',
      `What ${folder.link} serves changed ${MAX_MEASUREMENTS} times while iteration ${journal.number} was compared with it. Run the ` +
        'command again when nobody goes back or changes that index.',
    );
  }

  /** The iteration that is served has these inputs. A run that was killed at its end may not have removed old ones. */
  async #current(): Promise<IterationSummary> {
    const { folder, servers, keep } = this.#options;
    await this.#checkServers([]);
    const lock = await folder.lockPublishing();
    try {
      const { number, generation, model, base, measures, index } = folder.current();
      return {
        number,
        state: 'current',
        index: folder.indexOf({ index }),
        generation,
        model,
        base,
        changes: [],
        settings: null,
        sameCorpus: null,
        trial: null,
        measures,
        refusals: [],
        servers: servers.map(({ url }) => url),
        removed: servers.length === 0 ? [] : await pruneIterations(folder, keep),
      };
    } finally {
      lock.release();
    }
  }

  /** What servers may answer with besides what `current` points to: a run may have been killed while it published. */
  #acceptedGenerations(): string[] {
    const { base, index } = this.#journal;
    if (index === null) return [];
    return [index.generation, ...(this.#isServed() ? [this.#options.folder.iteration(base).generation] : [])];
  }

  /** Before hours of work: a server must answer with what `current` points to, or with one of the others. */
  async #checkServers(others: readonly string[]): Promise<void> {
    const { folder, servers, signal } = this.#options;
    const { number, generation: expected } = folder.current();
    for (const server of servers) {
      const { generation } = await server.facts(signal);
      if (generation === expected || others.includes(generation)) continue;
      throw new TrawlError(
        'CONFIG_INVALID',
        `${server.url} answers with generation ${generation}, but ${folder.link} points to iteration ${number}, generation ` +
          `${expected}. Start the server with that path, or reload it.`,
        { details: { url: server.url, generation, expected } },
      );
    }
  }

  /** Tries the model on a part of the served index, unless that was done, and returns why it is not worth embedding all of it. */
  async #try(): Promise<readonly Refusal[]> {
    const { folder, work, trialGates } = this.#options;
    if (work.triage !== undefined) {
      const { number, generation } = folder.current();
      if (number !== this.#journal.base) await this.#record({ base: number });
      const { trial } = this.#journal;
      if (trial?.against !== generation || !work.triage.isTried(trial)) {
        this.#report('triage');
        await this.#record({ trial: await work.triage.run(this.#folders(), this.#journal) });
      }
    }
    // Only now: a run that was killed before has its vectors. Without a trial, they belong to a trial that nobody resumes.
    await rm(this.#folders().triage, { recursive: true, force: true });
    return work.triage === undefined ? [] : trialRefusals(this.#journal.trial!, trialGates);
  }

  /** Somebody may have changed the new index in place before it is published, for example by `trawl remove`. */
  async #noteChangedIndex(): Promise<void> {
    const { index } = this.#journal;
    const generation = this.#options.folder.generationOf(this.#folders().index) ?? index!.generation;
    if (generation === index!.generation) return;
    await this.#record({ index: { ...index!, generation }, ...(this.#isServed() ? {} : { measures: null }) });
  }

  /** Measures against the index that is served, unless that was done. It may be another than when the iteration began. */
  async #measure(): Promise<void> {
    const { folder, work } = this.#options;
    if (this.#isServed()) return;
    const { number, generation } = folder.current();
    const { measures } = this.#journal;
    if (measures?.against === generation && work.isMeasured(measures)) return;
    if (number !== this.#journal.base) await this.#record({ base: number });
    this.#report('measures');
    await this.#record({ measures: await work.measure(this.#folders(), this.#journal) });
  }

  /** Undefined if another index is served than the one that was measured against: somebody went back or changed it meanwhile. */
  async #publish(): Promise<IterationSummary | undefined> {
    const { folder, servers, keep, signal } = this.#options;
    const { number, base, model, index, measures, inputs } = this.#journal;
    const lock = await folder.lockPublishing();
    try {
      const current = folder.current();
      if (current.number !== number && current.generation !== measures!.against) return undefined;
      this.#report('publish');
      const entry: PublishedIteration = {
        number,
        index: folder.relativeIndexOf(number),
        generation: index!.generation,
        model: model!.name,
        inputs,
        base,
        measures,
        publishedAt: null,
        kept: true,
      };
      await this.#recordEntry(entry);
      await serveIteration({ folder, to: entry, from: folder.iteration(base), servers, signal });
      await this.#recordEntry({ ...entry, publishedAt: new Date().toISOString() });
      await removeJournal(folder.root);
      const removed = servers.length === 0 ? [] : await pruneIterations(folder, keep);
      return this.#summary('published', { removed });
    } finally {
      lock.release();
    }
  }

  async #recordEntry(entry: PublishedIteration): Promise<void> {
    const { folder } = this.#options;
    const { left, ...history } = folder.history;
    const others = history.iterations.filter(({ number }) => number !== entry.number);
    await writeHistory(folder.root, {
      ...history,
      next: entry.number + 1,
      iterations: [...others, entry],
      left: entry.publishedAt === null ? left : undefined,
    });
  }

  /** Whether the link points to this iteration: a run was killed while it published. */
  #isServed(): boolean {
    return this.#options.folder.current().number === this.#journal.number;
  }

  async #record(step: Partial<Journal>): Promise<void> {
    this.#journal = { ...this.#journal, ...step };
    await writeJournal(this.#options.folder.root, this.#journal);
  }

  #report(step: IterationStep | 'publish'): void {
    throwIfCancelled(this.#options.signal);
    this.#options.onStep(step, this.#journal.number);
  }

  #folders(): StepFolders {
    const { folder } = this.#options;
    const own = folder.folderOf(this.#journal.number);
    const base = folder.indexOf(folder.iteration(this.#journal.base));
    return { model: join(own, 'model'), triage: join(own, 'triage'), index: join(own, 'index'), base };
  }

  #summary(
    state: IterationSummary['state'],
    more: Partial<Pick<IterationSummary, 'refusals' | 'removed'>> = {},
  ): IterationSummary {
    const { number, base, model, index, trial = null, measures } = this.#journal;
    return {
      number,
      state,
      index: this.#folders().index,
      generation: index?.generation ?? null,
      model: model?.name ?? null,
      base,
      changes: model?.changes ?? [],
      settings: model === null ? null : { precision: model.precision, overrides: model.overrides },
      sameCorpus: index?.sameCorpus ?? null,
      trial,
      measures,
      refusals: [],
      servers: [],
      removed: [],
      ...more,
    };
  }
}
