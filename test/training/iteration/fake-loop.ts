import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { readIndexManifest } from '../../../src/index/manifest/read-manifest.ts';
import { withChecksum } from '../../../src/index/manifest/write-manifest.ts';
import type { IterationSummary, IterationWork } from '../../../training/iteration/iteration-work.ts';
import { IterationsFolder } from '../../../training/iteration/iterations-folder.ts';
import { type Measures, type Trial, writeHistory } from '../../../training/iteration/records.ts';
import { type IterationOptions, runIteration } from '../../../training/iteration/run-iteration.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const RECALL: Readonly<Record<string, number>> = { '0': 0.5 };
export const generation = (number: number): string => String(number).padStart(32, '0');

interface RunOptions {
  readonly settings?: Record<string, unknown>;
  /** What a trial finds. Default: there is none. */
  readonly trial?: Partial<Trial> & { readonly sample?: number };
}

/** A loop whose steps write folders and return fixed measures. */
export class FakeLoop {
  readonly folder: IterationsFolder;
  readonly corpus: string;
  readonly checkpoints: string;
  /** The steps that were done. */
  readonly steps: string[] = [];
  /** Called within the step of this name. */
  during: Record<string, () => Promise<void> | void> = {};
  recall: Record<number, number> = {};

  private constructor(root: string, folder: IterationsFolder) {
    this.folder = folder;
    this.corpus = join(root, 'corpus.jsonl');
    this.checkpoints = join(root, 'checkpoints');
    writeFileSync(this.corpus, '{"id": 1, "contents": "x"}\n');
  }

  static async make(t: TestContext): Promise<FakeLoop> {
    const temp = await tempFolder(t);
    const root = join(temp, 'loop');
    const start = join(temp, 'start');
    makeIndex(start);
    mkdirSync(join(root, 'iterations'), { recursive: true });
    const first = { number: 0, index: start, generation: generation(0), model: 'm', inputs: null, base: null };
    await writeHistory(root, {
      format: 'trawl-iterations',
      version: 1,
      next: 1,
      iterations: [{ ...first, measures: null, publishedAt: null, kept: true }],
    });
    const folder = IterationsFolder.open(root);
    await folder.pointTo({ index: start });
    return new FakeLoop(temp, folder);
  }

  checkpoint(name: string): string {
    const path = join(this.checkpoints, name);
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, 'config.json'), JSON.stringify({ name }));
    return path;
  }

  run(name: string, options: Partial<IterationOptions> & RunOptions = {}) {
    const { settings = {}, trial, ...others } = options;
    const step = async (what: string): Promise<void> => {
      this.steps.push(what);
      await this.during[what]?.();
    };
    return runIteration({
      folder: this.folder,
      inputs: { checkpoint: join(this.checkpoints, name), corpus: [this.corpus], corpusFormat: undefined, settings },
      work: {
        model: async ({ model }) => {
          await step('model');
          mkdirSync(model, { recursive: true });
          return { name, precision: 'float32', overrides: {}, changes: [] };
        },
        triage: trial === undefined ? undefined : this.#triage(trial, step),
        index: async ({ index }, { number }) => {
          await step('index');
          makeIndex(index);
          return { generation: generation(number), sameCorpus: true };
        },
        measure: async (_, { number, base }) => {
          await step(`measure ${number} against ${base}`);
          return this.#measures(base, number);
        },
        isMeasured: () => true,
      },
      gates: { minRecall: undefined, maxRecallDrop: 0, maxChanged: undefined, maxReplaced: undefined },
      trialGates: { minRecall: undefined, maxDrop: 0 },
      servers: [],
      keep: 3,
      restart: false,
      onStep: () => undefined,
      signal: new AbortController().signal,
      ...others,
    });
  }

  async publish(name: string, options: Partial<IterationOptions> = {}): Promise<IterationSummary> {
    this.checkpoint(name);
    const summary = await this.run(name, options);
    assert.equal(summary.state, 'published');
    return summary;
  }

  /** A trial that leaves vectors in its folder, as one that keeps them. */
  #triage(
    { sample = 100, ...found }: Partial<Trial> & { readonly sample?: number },
    step: (what: string) => Promise<void>,
  ): NonNullable<IterationWork['triage']> {
    const settings = { sample };
    return {
      run: async ({ triage }, { number, base }) => {
        mkdirSync(join(triage, 'vectors'), { recursive: true });
        await step(`triage ${number} against ${base}`);
        const sizes = { judged: 10, k: 10, pool: 120, whole: 1000, wholeMs: 60_000 };
        const figures = { estimate: { value: 0.6, low: 0.5, high: 0.7 }, bound: 0.7, present: 0.5, error: 0.015 };
        return { against: this.folder.iteration(base).generation, settings, ...sizes, ...figures, ...found };
      },
      isTried: (trial) => isDeepStrictEqual(trial.settings, settings),
    };
  }

  #measures(base: number, number: number): Measures {
    const recall = (of: number): number => this.recall[of] ?? RECALL[of] ?? 0.5;
    return {
      against: this.folder.iteration(base).generation,
      settings: {},
      judged: 10,
      recallK: 10,
      before: { 'recall@10': recall(base) },
      now: { 'recall@10': recall(number) },
      answers: { of: 'questions', k: 3, queries: 10, changed: 6, replaced: 0.3, rbo: 0.8 },
    };
  }

  get current(): string {
    return readlinkSync(this.folder.link);
  }

  get folders(): string[] {
    return readdirSync(join(this.folder.root, 'iterations')).sort();
  }
}

export function makeIndex(folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'manifest.json'), '{}');
}

/** What a change in place leaves: an index with another generation. */
export function changeIndex(folder: string, changed: string): void {
  const corpus = { files: [], skippedLines: 0, duplicateIds: 0, truncatedPassages: 0, passageTemplate: '{contents}' };
  const made = { analyser: 'standard', unicode: '16', k1: 0.9, b: 0.4, fields: ['contents'] };
  const bm25 = { made, deleted: null };
  const content = { rows: 0, dimension: 0, metric: null, model: null, corpus, shards: [], tombstones: null, bm25 };
  const manifest = { format: 'trawl-index', version: 2, generation: changed, ...content, writer: 'test' };
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(withChecksum(manifest)));
  assert.equal(readIndexManifest(folder).generation, changed);
}

/** A run that was killed behind the change of the link, before a server was reloaded. */
export async function killedBehindLink(loop: FakeLoop, name: string): Promise<void> {
  loop.checkpoint(name);
  const { number } = await loop.run(name, { until: 'measures' });
  const { history } = loop.folder;
  const entry = {
    ...history.iterations.at(-1)!,
    number,
    index: loop.folder.relativeIndexOf(number),
    generation: generation(number),
    publishedAt: null,
  };
  await writeHistory(loop.folder.root, { ...history, iterations: [...history.iterations, entry] });
  await loop.folder.pointTo(entry);
}
