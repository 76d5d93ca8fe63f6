import assert from 'node:assert/strict';
import { join } from 'node:path';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { NAMEABLE_DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { runTrawl } from '../cli/run-trawl.ts';
import { writeCrossEncoder } from '../encoder/rerank/tiny-cross-encoder.ts';
import { type ServedIndex, serve } from './served.ts';
import { writeWikiRows } from './wiki-rows.ts';

/** Rows of the index of a trial; fewer for a short one. */
export const TRIAL_ROWS = Number(process.env.TRAWL_CLUSTER_ROWS ?? 50_000);
export const TRIAL_DIMENSION = 256;
export const TRIAL_K = 10;

/** The index of a trial in a folder, and how it is served and published. */
export class TrialIndex {
  readonly local: string;
  readonly #reranker: string;
  readonly #env: Readonly<Record<string, string>>;

  private constructor(folder: string, env: Readonly<Record<string, string>>) {
    this.local = join(folder, 'wiki');
    this.#reranker = join(folder, 'tiny-reranker');
    this.#env = env;
  }

  /** Builds the index, with a column for filters. @param env with the credentials of the store. */
  static async build(
    folder: string,
    { args = [], env = {} }: { readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> },
  ): Promise<TrialIndex> {
    const index = new TrialIndex(folder, env);
    const corpus = join(folder, 'corpus.jsonl');
    await writeWikiRows(corpus, TRIAL_ROWS);
    const model = ['--model', `token-average-${TRIAL_DIMENSION}`, '--column', 'part:number'];
    await index.trawl('index', corpus, '--out', index.local, ...model, ...args);
    const checkpoint = join(folder, 'checkpoint');
    writeCrossEncoder(checkpoint);
    await importModel(checkpoint, { out: index.#reranker, name: 'tiny-reranker', precisions: ['float32'] });
    return index;
  }

  /** Standard output of a command that has to succeed. */
  async trawl(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runTrawl(args, { env: this.#env });
    assert.equal(code, 0, `trawl ${args.join(' ')}: ${stderr}`);
    return stdout;
  }

  /** Publishes the index, with its comparison. Returns the time, in milliseconds. */
  async publish(address: string, ...args: string[]): Promise<number> {
    const start = performance.now();
    const report = JSON.parse(await this.trawl('publish', this.local, address, ...args, '--json'));
    const ms = performance.now() - start;
    assert.equal(report.rows, TRIAL_ROWS);
    assert.ok(report.verified.questions > 0);
    assert.equal(report.verified.same, report.verified.questions);
    assert.match(await this.trawl('verify', address), /intact/);
    return ms;
  }

  /** A server of the folder or of the store, with a reranker for the requests that ask for one, and an address for every dialect. */
  serve(place: string, { hasCache = false } = {}): Promise<ServedIndex> {
    const reranking = ['--rerank', this.#reranker, '--rerank-depth', '0', '--rerank-threads', '1'];
    const args = [...reranking, '--encoder-threads', '1', '--quiet'];
    return serve(place, { dialects: NAMEABLE_DIALECTS, hasCache, args, env: this.#env });
  }
}
