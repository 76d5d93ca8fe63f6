import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { contentsOf } from '../../src/index/passages/contents.ts';
import { distinctQueries, readSearchCalls } from '../serve/search-calls.ts';
import type { CorpusFiles, QueryFiles } from './lexical-engine.ts';
import { GENERATOR_VERSION, generatePassages, readSentences } from './make-corpus.ts';
import { readTexts, writeTexts } from './text-file.ts';

const SHARED = join(packageRoot, '..', 'shared', 'data');

/** Queries of the recorded calls that are measured. */
const AGENT_QUERIES = 1_000;

export interface CorporaOptions {
  /** Corpus files. Without any: pool_wiki_dev of ../shared/data. */
  readonly corpus: readonly string[];
  /** Passages of the generated corpus. */
  readonly rows: number;
  readonly seed: number;
  /** Folder of the generated passages, which are kept for the next run. */
  readonly cache: string;
  readonly scratch: string;
  readonly kernel: Kernel;
  /** Whether to write the files of terms. */
  readonly withTerms: boolean;
  readonly signal: AbortSignal;
  note(text: string): void;
}

/** The corpus of the options, as files of texts. */
export async function givenCorpus(options: CorporaOptions): Promise<CorpusFiles> {
  const { scratch, signal } = options;
  const corpus = corpusPaths(options);
  const path = join(scratch, 'given.texts');
  async function* texts(): AsyncGenerator<string> {
    for await (const { row } of openCorpus(corpus, { checksums: false, signal })) yield contentsOf(row) ?? '';
  }
  const { texts: rows, bytes } = await writeTexts(path, texts());
  const name = options.corpus.length > 0 ? 'corpus' : 'pool_wiki_dev';
  return withTerms({ name, rows, textBytes: bytes, texts: path }, options);
}

/** A corpus of `rows` passages made of the sentences of the given one. */
export async function generatedCorpus(options: CorporaOptions): Promise<CorpusFiles> {
  const { rows, seed, cache, signal, note } = options;
  const source = corpusPaths(options);
  const hash = createHash('sha256').update(`${GENERATOR_VERSION} ${rows} ${seed}`);
  for (const path of source) {
    const { size, mtimeMs } = await stat(path);
    hash.update(` ${resolve(path)} ${size} ${mtimeMs}`);
  }
  const folder = join(cache, 'bench');
  const path = join(folder, `passages-${rows}-${hash.digest('hex').slice(0, 12)}.texts`);
  if (!existsSync(path)) {
    await mkdir(folder, { recursive: true });
    note(`generating ${rows} passages into ${path} (once)`);
    const sentences = await readSentences(source, signal);
    function* texts(): Generator<string> {
      for (const { contents } of generatePassages(sentences, { rows, seed })) {
        throwIfCancelled(signal);
        yield contents;
      }
    }
    await writeTexts(`${path}.part`, texts());
    await rename(`${path}.part`, path);
  }
  const textBytes = (await stat(path)).size - 4 * rows;
  return withTerms({ name: `generated-${rows}`, rows, textBytes, texts: path }, options);
}

/** The files that the sentences and the given corpus come from: by default pool_wiki_dev of ../shared/data. */
export function corpusPaths({ corpus }: Pick<CorporaOptions, 'corpus'>): readonly string[] {
  return corpus.length > 0 ? corpus : [required('corpus', join(SHARED, 'pool_wiki_dev', 'corpus.jsonl'))];
}

async function withTerms(
  corpus: Omit<CorpusFiles, 'terms'>,
  { scratch, kernel, withTerms, signal }: CorporaOptions,
): Promise<CorpusFiles> {
  const path = join(scratch, `${corpus.name}.terms`);
  if (withTerms) {
    async function* terms(): AsyncGenerator<string> {
      for await (const block of readTexts(corpus.texts)) {
        throwIfCancelled(signal);
        for (const text of block) yield termsOf(text, kernel);
      }
    }
    await writeTexts(path, terms());
  }
  return { ...corpus, terms: path };
}

export interface QueriesOptions {
  /** A file of questions, as for `trawl eval`. Without it: HotpotQA's questions and the recorded calls. */
  readonly queryTexts: string | undefined;
  /** Recorded search calls. Without them: those of ../shared/data. */
  readonly calls: string | undefined;
  readonly seed: number;
  readonly scratch: string;
  readonly kernel: Kernel;
}

/** The lists of queries to measure. */
export async function queryLists(options: QueriesOptions): Promise<QueryFiles[]> {
  const { queryTexts, seed } = options;
  if (queryTexts !== undefined) return [await queryFiles('queries', await questions(queryTexts), options)];
  const hotpot = required('query-texts', join(SHARED, 'hotpot_val500_pooled', 'queries.jsonl'));
  const calls = options.calls ?? required('calls', join(SHARED, 'search_calls', 'all_search_calls.jsonl'));
  const agents = distinctQueries(await readSearchCalls(calls), seed).slice(0, AGENT_QUERIES);
  return [await queryFiles('hotpotqa', await questions(hotpot), options), await queryFiles('agents', agents, options)];
}

async function questions(path: string): Promise<string[]> {
  const list = (await readQuestionSet(path)).questions.map(({ question, query }) => query ?? question);
  if (list.length > 0) return list;
  throw new TrawlError('USAGE', `${path} has no questions. Give others with --query-texts.`);
}

async function queryFiles(
  name: string,
  queries: readonly string[],
  { scratch, kernel }: QueriesOptions,
): Promise<QueryFiles> {
  const [texts, terms] = [join(scratch, `${name}.texts`), join(scratch, `${name}.query-terms`)];
  await writeTexts(texts, queries);
  await writeTexts(
    terms,
    queries.map((query) => termsOf(query, kernel)),
  );
  return { name, queries, texts, terms };
}

function termsOf(text: string, kernel: Kernel): string {
  return kernel.analyse('english', text).join(' ');
}

/** Returns the default path of an option. Throws USAGE if it does not exist. */
function required(option: string, path: string): string {
  if (existsSync(path)) return path;
  throw new TrawlError('USAGE', `--${option} is missing: the default, ${path}, does not exist.`);
}
