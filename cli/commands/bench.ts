import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { BASELINE_CASES, installBaselines } from '../../bench/baselines.ts';
import { availableCores } from '../../src/embedding/available-cores.ts';
import { checkBenchOptions, runBench } from '../bench-cases.ts';
import { BENCH_OPTIONS } from '../bench-options.ts';
import { parseNames } from '../bench-values.ts';
import { defineCommand, EXIT } from '../command.ts';

export const benchCommand = defineCommand({
  name: 'bench',
  summary:
    'measure the search beside faiss, numpy and usearch, the encoder beside sentence-transformers, building, and the server',
  description:
    '`trawl bench flat` times exact top-k over synthetic vectors with the distribution of real ones, or over a FAISS file, ' +
    'in turns with the baselines: the same rows, queries and threads, a median of several runs after a warm-up, the answers ' +
    'compared. `trawl bench embed` times a model over passages of a corpus, and over single queries, in turns with ' +
    'sentence-transformers over the checkpoint that the model was made of. `trawl bench index` builds an index of --rows ' +
    "passages of 100 words, or of --corpus, with vectors that cost nothing, or with --model beside the encoder alone and, with --baseline-model, FlashRAG's way. " +
    '`trawl bench serve` puts `trawl serve` and a FastAPI server of the kind Search-R1 is used with under the same loads, in ' +
    'turns, over the same vectors, from a process of its own, and compares their answers.\n\n' +
    '`trawl bench baselines` makes the Python environment of flat, `trawl bench baselines embed` that of embed (torch: up to ' +
    '6 GB), `trawl bench baselines serve` that of serve beside it, once. A baseline that is not there, or does not fit into memory, is left out with a word. bench/README.md ' +
    'defines the figures.',
  positionals: {
    usage: '<case> [of]',
    help: {
      case: 'flat: the search. embed: the encoder. index: the building. serve: the server. baselines: install what they are compared with.',
      of: 'With baselines: flat (faiss, numpy, usearch; the default), embed (sentence-transformers) or serve (a FastAPI server).',
    },
    min: 1,
    max: 2,
  },
  options: BENCH_OPTIONS,
  examples: [
    'trawl bench baselines',
    'trawl bench flat --rows 1000000 --queries 1,16,64,256,512 --against faiss,numpy,usearch --json',
    'trawl bench index --rows 300000 --json',
    'trawl bench flat --vectors indexes/wiki18/vectors.faiss --against none',
    'trawl bench serve --model models/all-MiniLM-L6-v2 --baseline-model ./all-MiniLM-L6-v2 --runs 3 --json',
    'trawl bench embed --model models/e5-base-v2 --texts wiki-18.jsonl --sample 500 --precision float32,int8',
  ],
  async run({ options, positionals, given, signal, out, note }) {
    const cache = options.cache ?? join(homedir(), '.cache', 'trawl');
    const [name = '', of] = positionals;
    if (name === 'baselines') {
      const which = parseNames('the second word', of ?? 'flat', BASELINE_CASES)[0]!;
      const python = await installBaselines(cache, which, { python: options.python ?? 'python3', signal, note });
      out(options.json ? JSON.stringify({ python }) : python);
      return EXIT.ok;
    }
    checkBenchOptions(name, of, options, given);
    // An index of many rows may be too much for the place of temporary files.
    const place = name === 'index' ? (options.cache ?? tmpdir()) : tmpdir();
    const scratch = await mkdtemp(join(place, 'trawl-bench-'));
    try {
      const { python, runs, seed } = options;
      const threads = options.threads ?? availableCores();
      const common = { threads, runs, seed, cache, scratch, python, signal, note };
      const { result, records, text } = await runBench(name, options, common);
      if (options.out !== undefined) await writeFile(options.out, `${JSON.stringify(result, null, 2)}\n`);
      out(options.json ? JSON.stringify(records) : text());
      return EXIT.ok;
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  },
});
