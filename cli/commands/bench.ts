import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BASELINE_CASES, installBaselines } from '../../bench/baselines.ts';
import { corpusPaths } from '../../bench/lexical/lexical-corpora.ts';
import { readSentences, writeCorpusFile } from '../../bench/lexical/make-corpus.ts';
import { installLucene } from '../../bench/lucene.ts';
import { usageError } from '../../src/base/errors.ts';
import { cacheFolder } from '../../src/base/options/environment.ts';
import type { OptionValues } from '../../src/base/options/option-spec.ts';
import { availableCores } from '../../src/base/system/cores.ts';
import { BENCH_CASES, checkBenchOptions } from '../bench/bench-cases.ts';
import { BENCH_OPTIONS } from '../bench/bench-options.ts';
import { parseNames } from '../bench/bench-values.ts';
import { requireWritable, writeOutputFile } from '../output/output-file.ts';
import { defineCommand, EXIT } from '../program/command.ts';

export const benchCommand = defineCommand({
  name: 'bench',
  summary: 'measure search, encoder, index build, server and BM25 against other programs',
  description:
    '`trawl bench all` runs the cases flat, embed, index and serve at one of three sizes, and measures recall, latency and memory ' +
    "from vectors and from questions beside FAISS, usearch, Lucene, bm25s and a server like Search-R1's. It writes one HTML page " +
    'and its figures as JSON. The same command resumes a run that was stopped.\n\n' +
    '`trawl bench flat` times exact top-k search over synthetic vectors with the distribution of real ones, or over a FAISS ' +
    'file. It alternates with the baselines on the same rows, queries and threads, takes the median of several runs after a ' +
    'warm-up, and compares the answers.\n\n' +
    '`trawl bench embed` times a model on passages of a corpus and on single queries, alternating with sentence-transformers ' +
    'on the checkpoint that the model was made from.\n\n' +
    "`trawl bench products` times the matrix products of an encoder with each of onnxruntime's operators: what the encoder can be " +
    'brought to on this machine.\n\n' +
    '`trawl bench index` builds an index of --rows passages of 100 words, or of --corpus, with an encoder that takes no ' +
    "time, or with --model. With --baseline-model, FlashRAG's builder is measured too.\n\n" +
    '`trawl bench serve` puts `trawl serve` and a FastAPI server like those used with Search-R1 under the same loads over ' +
    'the same vectors, alternating, with the load generator in its own process, and compares their answers.\n\n' +
    '`trawl bench bm25` builds inverted indexes of --corpus and of --rows passages generated from its sentences, and times BM25 ' +
    'searches, alternating with Lucene, bm25s and SQLite. `trawl bench make-corpus FILE` only writes such passages.\n\n' +
    '`trawl bench bulk` searches for --queries vectors as `trawl search --query-vectors` does, with each output format, ' +
    'alternating with the engine alone.\n\n' +
    '`trawl bench filter` evaluates filters over generated columns of --rows rows. With --searches it also times searches that ' +
    'a filter limits to shares of the rows.\n\n' +
    '`trawl bench modes` builds an index of --corpus, and measures recall and latency of dense, BM25 and hybrid search, reranked ' +
    'and filtered.\n\n' +
    '`trawl bench triage` estimates recall of the models of --tried from pools, as `trawl triage` does, and compares the estimates ' +
    'with the recall in their whole indexes.\n\n' +
    '`trawl bench baselines` installs the Python environment for flat, `… baselines embed` that for embed (torch: up to 6 GB), ' +
    '`… baselines serve` adds that for serve, and `… baselines bm25` installs Lucene, bm25s and numba. A baseline that is not ' +
    'installed or does not fit into memory is omitted with a remark. The pages in bench/ define the figures.',
  positionals: {
    usage: '<case> [for]',
    help: {
      case: 'all (a report), flat (search), bulk (many queries), embed (encoder), products (operators of onnxruntime), index (build), serve (server), bm25, filter, modes or triage; baselines installs the programs to compare with, make-corpus generates passages.',
      for: 'With baselines: flat (faiss, numpy, usearch; the default), embed (sentence-transformers), serve (a FastAPI server) or bm25 (Lucene, bm25s). With make-corpus: the file to write.',
    },
  },
  options: BENCH_OPTIONS,
  examples: [
    'trawl bench baselines',
    'trawl bench all --size small --report report.html',
    'trawl bench all --from report.json --report report.html',
    'trawl bench flat --rows 1000000 --queries 1,16,64,256,512 --against faiss,numpy,usearch --json',
    'trawl bench bulk --rows 1000000 --queries 100000 --k 100 --runs 10',
    'trawl bench products --dimension 384 --layers 6',
    'trawl bench index --rows 300000 --json',
    'trawl bench flat --vectors indexes/wiki18/vectors.faiss --against none',
    'trawl bench serve --model models/all-MiniLM-L6-v2 --baseline-model ./all-MiniLM-L6-v2 --runs 3 --json',
    'trawl bench bm25 --rows 5000000 --against lucene --json',
    'trawl bench embed --model models/e5-base-v2 --texts wiki-18.jsonl --sample 500 --precision float32,int8',
  ],
  async run({ options, positionals, given, signal, out, note }) {
    const cache = options.cache ?? cacheFolder('trawl');
    const [name = '', second] = positionals;
    if (name === 'baselines') {
      const which = parseNames('The second word', second ?? 'flat', BASELINE_CASES)[0]!;
      const python = await installBaselines(cache, which, { python: options.python ?? 'python3', signal, note });
      if (which === 'bm25') await installLucene(cache, { signal, note });
      out(options.json ? JSON.stringify({ python }) : python);
      return EXIT.ok;
    }
    if (name === 'make-corpus') {
      await makeCorpus(second, options, signal);
      out(
        options.json ? JSON.stringify({ corpus: second, rows: options.rows }) : `${options.rows} passages in ${second}`,
      );
      return EXIT.ok;
    }
    checkBenchOptions(name, second, options, given);
    if (options.out !== undefined) await requireWritable(options.out);
    // A large index may not fit into the folder for temporary files.
    const parent =
      name === 'all' || name === 'index' || name === 'bm25' || name === 'filter' || name === 'modes'
        ? (options.cache ?? tmpdir())
        : tmpdir();
    const scratch = await mkdtemp(join(parent, 'trawl-bench-'));
    try {
      const { python, runs, seed } = options;
      const threads = options.threads ?? availableCores();
      const common = { threads, runs, seed, cache, scratch, python, signal, note };
      const { result, records, text, writes, problems = [] } = await BENCH_CASES[name](options, common);
      if (options.out !== undefined && writes !== true)
        await writeOutputFile(options.out, [`${JSON.stringify(result, null, 2)}\n`]);
      out(options.json ? JSON.stringify(records) : text());
      for (const problem of problems) note(problem);
      return problems.length === 0 ? EXIT.ok : EXIT.failed;
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  },
});

/**
 * Writes generated passages (bench/bm25.md, "Generated passages") to a new file.
 *
 * @throws TrawlError USAGE if the file is missing or exists, or the corpus has no sentences.
 */
async function makeCorpus(path: string | undefined, options: OptionValues<typeof BENCH_OPTIONS>, signal: AbortSignal) {
  if (path === undefined) throw usageError('`trawl bench make-corpus` needs the file to write as second word.');
  if (existsSync(path)) throw usageError(`${path} exists already. Remove it or name another file.`);
  const source = await readSentences(corpusPaths(options), signal);
  await writeCorpusFile(path, source, { ...options, signal });
}
