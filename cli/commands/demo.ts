import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { cacheFolder } from '../../src/base/options/environment.ts';
import { packageRoot, packageVersion } from '../../src/base/package-root.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { onnxruntimeProblem } from '../../src/encoder/inference/onnxruntime.ts';
import * as option from '../options/option.ts';
import { defineCommand, EXIT } from '../program/command.ts';

const SAMPLE = join(packageRoot, 'corpus', 'sample');
// With `--bm25` alone, an index has no vectors.
const WORDS = ['--bm25'];
const VECTORS = ['--model', 'token-average-256'];

export const demoCommand = defineCommand({
  name: 'demo',
  summary: 'serve the sample corpus with a search page, to try Trawl',
  description:
    'Builds the index of the sample corpus that comes with Trawl (270 passages, with the small bundled encoder and BM25; a few ' +
    'seconds) if it is not there, and serves it with a search page. Nothing is downloaded. Ctrl-C stops the server. ' +
    'Its own options may come from the configuration file and the environment; options of `trawl index` and `trawl serve` there do not count.',
  positionals: { usage: '', help: {} },
  options: {
    out: option.text(
      'DIR',
      "Folder of the index. Default: demo/VERSION in trawl's folder of the user's cache (~/.cache/trawl, or $XDG_CACHE_HOME/trawl).",
    ),
    port: option.integer({ min: 0, max: 65_535, default: 8000 }, 'Port to listen on. 0 chooses a free one.'),
    host: option.text(
      { default: '127.0.0.1' },
      'Address to listen on. 0.0.0.0 listens on every network of this machine.',
    ),
  },
  examples: ['trawl demo', 'trawl demo --port 8123'],
  async run({ options, note, signal, program }) {
    const index = options.out ?? join(cacheFolder('trawl'), 'demo', packageVersion);
    checkWritable(index);
    const quiet = options.quiet ? ['--quiet'] : [];
    const withoutVectors = onnxruntimeProblem();
    if (withoutVectors !== undefined) note(`Without vectors: ${withoutVectors}\n`);
    const modes = withoutVectors === undefined ? [...VECTORS, ...WORDS] : WORDS;
    const build = [join(SAMPLE, 'passages.jsonl'), '--out', index, ...modes, '--if-changed', '--no-json', ...quiet];
    // Stdout is for what the server prints, so the result of the build is a note.
    const built = await program.run('index', build, {
      jsonErrors: options.json,
      argumentsOnly: true,
      out: note,
    });
    if (built !== EXIT.ok) return built;
    if (signal.aborted) return EXIT.interrupted;
    note(`\n${NEXT}\n`);
    const serve = [index, '--port', `${options.port}`, '--host', options.host, ...quiet];
    return program.run('serve', [...serve, options.json ? '--json' : '--no-json'], { argumentsOnly: true });
  },
});

// A checkout's own program, not npx: the process that the shell starts is then the server, so SIGHUP reloads it.
const PROGRAM = existsSync(join(packageRoot, 'tsconfig.json')) ? 'bin/trawl' : 'trawl';

const NEXT = `Questions to try are in ${join(SAMPLE, 'questions.jsonl')}. An index of your own passages:
  ${PROGRAM} index FILE.jsonl --out indexes/mine
  ${PROGRAM} serve indexes/mine`;

/** @throws TrawlError OUTPUT_NOT_WRITABLE or DISK_FULL if the index is not there and cannot be made. */
function checkWritable(index: string): void {
  if (existsSync(index)) return;
  const parent = dirname(resolve(index));
  try {
    mkdirSync(parent, { recursive: true });
    accessSync(parent, constants.W_OK);
  } catch (error) {
    const failure = writeFailure(error, parent);
    if (!(failure instanceof TrawlError)) throw error;
    const { code, message, details } = failure;
    throw new TrawlError(code, `${message} Name another folder for the index with --out.`, { details, cause: error });
  }
}
