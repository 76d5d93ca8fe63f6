import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../src/package-root.ts';
import type { SystemsResult } from '../tables/systems-result.ts';
import { embedQuestions, type SetFiles, searchVectors, VECTOR_RUNS, vectorsByText, writeIds } from './encoded-set.ts';
import { BUNDLED, EvaluatedSystems, type EvaluatedSystemsOptions } from './evaluated-systems.ts';
import { serveVectorReranker } from './vector-reranker.ts';

const SETS = ['hotpot_val500_pooled', 'squad_v11_dev'];
/** bfloat16 is compared in precision-quality.ts; without AVX-512 its passages take an hour. */
const PRECISIONS = ['float32', 'int8'] as const;
/** Hits of BM25 that the reranker orders. */
const RERANK_DEPTH = 100;

export interface SystemsOptions extends EvaluatedSystemsOptions {
  /** Folder with hotpot_val500_pooled, squad_v11_dev and scifact_tevatron_emb. */
  readonly data: string;
  /** An encoder to import in each precision; without it only the bundled encoder is measured. */
  readonly checkpoint: string | undefined;
  /** A Python with faiss-cpu and usearch; without it there are no rows of FAISS and usearch. */
  readonly python: string | undefined;
}

/** Measures the rows of the table in docs/evaluation.md with `trawl eval`. */
export class SystemsMeasurement {
  readonly #options: SystemsOptions;
  readonly #systems: EvaluatedSystems;

  constructor(options: SystemsOptions) {
    this.#options = options;
    this.#systems = new EvaluatedSystems(options);
  }

  async rows(): Promise<SystemsResult['rows']> {
    const { checkpoint } = this.#options;
    const model = checkpoint === undefined ? undefined : await this.#systems.imported(checkpoint, PRECISIONS);
    for (const set of SETS) await this.#collection(set, model);
    await this.#sample('bundled', BUNDLED);
    if (model !== undefined) await this.#sample('MiniLM', model);
    if (this.#options.python !== undefined) await this.#published(this.#options.python);
    return this.#systems.rows;
  }

  /** Encoders, precisions, modes, reranking and graphs over one corpus; compared with the first of them. */
  async #collection(name: string, model: string | undefined): Promise<void> {
    const { data, work, python } = this.#options;
    const set: SetFiles = { corpus: join(data, name, 'corpus.jsonl'), queries: join(data, name, 'queries.jsonl') };
    const bundled = await this.#systems.indexed(`${name}-bundled`, set.corpus, BUNDLED, 'float32');
    const ofBundled = (mode: string): string => `${mode}, bundled encoder=${bundled}?mode=${mode}`;
    if (model === undefined) {
      await this.#systems.measure(name, set.queries, [
        ofBundled('dense'),
        `BM25=${bundled}?mode=bm25`,
        ofBundled('hybrid'),
      ]);
      return;
    }
    const indexes = new Map<string, string>();
    for (const precision of PRECISIONS) {
      indexes.set(precision, await this.#systems.indexed(`${name}-${precision}`, set.corpus, model, precision));
    }
    const float32 = indexes.get('float32')!;
    const vectors = { passages: join(work, `${name}.npy`), queries: join(work, `${name}-queries.npy`) };
    await this.#systems.trawl('export', float32, '--npy', vectors.passages, '--overwrite');
    await embedQuestions(set, { model, precision: 'float32' }, vectors.queries);
    const reranker = await serveVectorReranker(await vectorsByText(set, vectors));
    try {
      const rerank = `rerank=${reranker.url}&rerank-api=tei&rerank-depth=${RERANK_DEPTH}`;
      const graphs = python === undefined ? [] : await this.#graphs(name, set, vectors, python);
      await this.#systems.measure(name, set.queries, [
        ...PRECISIONS.map((precision) => `dense, MiniLM in ${precision}=${indexes.get(precision)}`),
        ...graphs.map((run) => run.replace('=', ' over the float32 vectors=')),
        `BM25=${float32}?mode=bm25`,
        `BM25, its first ${RERANK_DEPTH} by MiniLM's scores=${float32}?mode=bm25&${rerank}`,
        `hybrid, MiniLM in float32=${float32}?mode=hybrid`,
        `hybrid, MiniLM in int8=${indexes.get('int8')}?mode=hybrid`,
        ofBundled('dense'),
        ofBundled('hybrid'),
      ]);
    } finally {
      reranker.close();
    }
  }

  async #graphs(name: string, set: SetFiles, vectors: { passages: string; queries: string }, python: string) {
    const folder = join(this.#options.work, `${name}-runs`);
    await searchVectors(folder, vectors, await writeIds(set, folder), { python, signal: this.#options.signal });
    return VECTOR_RUNS.map((run) => `${run.name}=${join(folder, run.file)}`);
  }

  /** An agent's sub-query alone, with the question, the question alone; and all sub-queries of a question, whose lists are fused. */
  async #sample(encoder: string, model: string): Promise<void> {
    const folder = join(packageRoot, 'corpus', 'sample');
    const index = await this.#systems.indexed(`sample-${encoder}`, join(folder, 'passages.jsonl'), model, 'float32');
    const subQueries = join(folder, 'sub-queries.jsonl');
    await this.#systems.measure(`sample, sub-queries, ${encoder}`, subQueries, [
      `question=${index}?query-form=question`,
      `sub-query=${index}?query-form=query`,
      `question [SEP] sub-query=${index}?query-form=question-and-query`,
    ]);
    await this.#systems.measure(`sample, two-hop questions, ${encoder}`, await this.#withAllQueries(subQueries), [
      `question=${index}?query-form=question`,
      `its sub-queries fused=${index}?query-form=queries`,
      `each question [SEP] sub-query fused=${index}?query-form=question-and-queries`,
    ]);
  }

  /** The questions of sub-queries, each with the list of them. */
  async #withAllQueries(file: string): Promise<string> {
    interface Entry {
      readonly id: string;
      readonly question: string;
      readonly query: string;
      readonly gold_ids: readonly string[];
    }
    const questions = new Map<string, { id: string; question: string; queries: string[]; gold_ids: string[] }>();
    for (const line of (await readFile(file, 'utf8')).trimEnd().split('\n')) {
      const { id, question, query, gold_ids: gold } = JSON.parse(line) as Entry;
      const key = id.replace(/\.\d+$/, '');
      const known = questions.get(key) ?? { id: key, question, queries: [], gold_ids: [] };
      known.queries.push(query);
      known.gold_ids = [...new Set([...known.gold_ids, ...gold])];
      questions.set(key, known);
    }
    const path = join(this.#options.work, 'sample-queries.jsonl');
    await writeFile(path, [...questions.values()].map((question) => `${JSON.stringify(question)}\n`).join(''));
    return path;
  }

  /** Vectors of SciFact that others published, without their texts. */
  async #published(python: string): Promise<void> {
    const { data, work, signal } = this.#options;
    const folder = join(data, 'scifact_tevatron_emb');
    const vectors = { passages: join(folder, 'corpus_768_f32.npy'), queries: join(folder, 'query_768_f32.npy') };
    const ids = { passages: join(folder, 'corpus_ids.txt'), queries: join(folder, 'query_ids.txt') };
    const runs = await searchVectors(join(work, 'scifact'), vectors, ids, { python, signal });
    await this.#systems.measure(
      'SciFact, published vectors',
      join(folder, 'topics.scifact.test.tsv'),
      VECTOR_RUNS.map(({ name, file }) => `${name}=${join(runs, file)}`),
      ['--qrels', join(folder, 'qrels.scifact.test.txt')],
    );
  }
}
