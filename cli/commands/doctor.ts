import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { formatBytes, formatNumberOf } from '../../src/base/format.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { availableCores } from '../../src/base/system/cores.ts';
import { availableMemory, memoryLimit } from '../../src/base/system/memory.ts';
import { cudaFacts } from '../../src/encoder/inference/cuda-libraries.ts';
import { onnxruntimeFacts } from '../../src/encoder/inference/onnx-session.ts';
import { onnxruntimeProblem } from '../../src/encoder/inference/onnxruntime.ts';
import { listModels } from '../../src/encoder/model/model-location.ts';
import type { EnginePrecision } from '../../src/engine/native/encoder-functions.ts';
import { type ChosenIsas, type InstructionSet, type Kernel, loadKernel } from '../../src/engine/native/kernel.ts';
import { cudaLibrary, type NativeGpus } from '../../src/engine/native/search-functions.ts';
import { sqliteVersion } from '../../src/index/passages/passage-file.ts';
import { isMilvusAddress } from '../../src/stores/milvus/milvus-address.ts';
import { isOpenSearchAddress } from '../../src/stores/opensearch/opensearch-address.ts';
import { isPublishedAddress } from '../../src/stores/published/published-address.ts';
import { defineCommand, EXIT } from '../program/command.ts';
import { milvusFacts, milvusLines } from '../stores/doctor-milvus.ts';
import { openSearchFacts, openSearchLines } from '../stores/doctor-opensearch.ts';

/** Instruction sets used for dense retrieval, as /proc/cpuinfo names them (x86 `flags`, Arm `Features`). */
const NOTABLE_FLAGS = [
  'avx2',
  'fma',
  'f16c',
  'avx512f',
  'avx512_vnni',
  'avx_vnni',
  'amx_int8',
  'asimd',
  'asimddp',
  'i8mm',
];

export const doctorCommand = defineCommand({
  name: 'doctor',
  takesStoreAddress: true,
  summary: 'show what this machine supports and what is missing',
  description:
    'Reports the versions of Trawl, Node.js, onnxruntime and SQLite; the processor with its relevant instruction sets; the ' +
    'cores and memory available to this process, which a container may limit; the search engine and the GPUs for --search-device; CUDA for the encoder; and the models. With an address in Milvus or OpenSearch, ' +
    'also what is there of the index, what is missing, and how long a search takes; the exit code is 3 if something is missing.',
  positionals: {
    usage: '[address]',
    help: {
      address:
        'An index in Milvus or OpenSearch: milvus://HOST:PORT/DATABASE/COLLECTION, opensearch://HOST:PORT/INDEX.',
    },
  },
  options: {},
  examples: ['trawl doctor', 'trawl doctor --json', 'trawl doctor milvus://localhost:19530/default/wiki18'],
  async run({ options, positionals, out }) {
    const [address = ''] = positionals;
    if (positionals.length > 0 && !isPublishedAddress(address)) {
      throw usageError('trawl doctor takes an address in Milvus or OpenSearch: milvus://… or opensearch://….');
    }
    const opensearch = isOpenSearchAddress(address) ? await openSearchFacts(address) : undefined;
    const milvus = isMilvusAddress(address) ? await milvusFacts(address) : undefined;
    const facts = machineFacts();
    if (options.json) out(JSON.stringify({ ...facts, opensearch, milvus }));
    else {
      const ofStore = [...(opensearch ? openSearchLines(opensearch) : []), ...(milvus ? milvusLines(milvus) : [])];
      out([...report(facts), ...ofStore].join('\n'));
    }
    return (opensearch ?? milvus)?.problems.length ? EXIT.problems : EXIT.ok;
  },
});

function machineFacts() {
  const problem = onnxruntimeProblem();
  const onnxruntime = problem === undefined ? onnxruntimeFacts() : { version: null, providers: [] };
  return {
    trawl: packageVersion,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    processor: cpus()[0]?.model ?? 'unknown',
    instructionSets: instructionSets(),
    cores: availableCores(),
    memoryBytes: memoryLimit(),
    freeMemoryBytes: availableMemory(),
    /** Null if it cannot be loaded, for the reason of `onnxruntimeProblem`. */
    onnxruntime: onnxruntime.version,
    onnxruntimeProblem: problem,
    executionProviders: onnxruntime.providers,
    cuda: cudaFacts(),
    sqlite: sqliteVersion(),
    search: searchEngine(),
    /** Instruction sets of the encoder in bfloat16 and in int8; empty without the native engine. */
    bfloat16: encoderSets('bfloat16'),
    int8: encoderSets('int8'),
    models: listModels(),
  };
}

function report(facts: ReturnType<typeof machineFacts>): string[] {
  return [
    `trawl           ${facts.trawl} on Node.js ${facts.node}, ${facts.platform}`,
    `processor       ${facts.processor}, ${formatNumberOf(facts.cores, 'core')} for this process`,
    `  instructions  ${facts.instructionSets.join(', ') || 'unknown on this system'}`,
    `memory          ${formatBytes(facts.memoryBytes)} for this process, ${formatBytes(facts.freeMemoryBytes)} available`,
    ...searchLines(facts.search),
    ...encoderLines('bfloat16', facts.bfloat16),
    ...encoderLines('int8', facts.int8),
    facts.onnxruntime === null
      ? `onnxruntime     none: ${facts.onnxruntimeProblem}`
      : `onnxruntime     ${facts.onnxruntime}, execution providers ${facts.executionProviders.join(', ')}`,
    `  CUDA          ${facts.cuda.installed ? '' : 'no: '}${facts.cuda.reason}`,
    `SQLite          ${facts.sqlite}`,
    `models          ${facts.models.join(', ') || 'none: add one with `trawl model add`'}`,
  ];
}

/** The notable instruction sets of the processor; empty on systems other than Linux. */
function instructionSets(): string[] {
  try {
    const line = /^(?:flags|Features)\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? '';
    const flags = new Set(line.trim().split(/\s+/));
    return NOTABLE_FLAGS.filter((flag) => flags.has(flag));
  } catch {
    return [];
  }
}

function searchEngine() {
  const loaded = loadKernel();
  if (!loaded.ok) return { engine: 'reference' as const, reason: loaded.reason };
  const { kernel } = loaded;
  return {
    engine: 'native' as const,
    isa: kernel.isa,
    chosenIsas: kernel.chosenIsas(kernel.namedIsa),
    threads: kernel.threads(),
    origin: kernel.origin,
    instructionSets: kernel.isas(),
    gpus: gpusOf(kernel),
  };
}

/** GPUs for searches; a text says why there are none. */
function gpusOf(kernel: Kernel): NativeGpus | string {
  try {
    return kernel.gpus(cudaLibrary());
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'DEVICE_UNAVAILABLE') return error.message;
    throw error;
  }
}

/** What `--search-device` can name. */
export function gpuLines(found: NativeGpus | string): string[] {
  const label = (text: string): string => `  ${text.padEnd(13)} `;
  if (typeof found === 'string') return [`${label('GPU')}no: ${found}`];
  if (found.gpus.length === 0) return [`${label('GPU')}no: the driver lists no GPU`];
  return found.gpus.map(({ name, freeBytes, totalBytes, problem }, i) =>
    problem === ''
      ? `${label(`cuda:${i}`)}${name}, ${formatBytes(freeBytes)} of ${formatBytes(totalBytes)} free, driver for CUDA ${found.cuda}`
      : `${label(`cuda:${i}`)}no: ${name}: ${problem}`,
  );
}

function encoderSets(precision: EnginePrecision): readonly InstructionSet[] {
  const loaded = loadKernel();
  return loaded.ok ? loaded.kernel.encoderIsas(precision) : [];
}

export function encoderLines(precision: EnginePrecision, sets: readonly InstructionSet[]): string[] {
  const fastest = sets.find(({ available }) => available);
  if (fastest === undefined) {
    const graphs = precision === 'int8' ? '; onnxruntime runs graphs in int8 without it' : '';
    return [`${precision.padEnd(16)}no: it needs the native engine${graphs}`];
  }
  // The engine times both when it opens the first encoder.
  const used = fastest.name === 'amx' ? 'amx, or avx512-vnni where that is faster' : fastest.name;
  return [`${precision.padEnd(16)}models in ${precision} use ${used}`, ...sets.map(setLine)];
}

function setLine({ name, available, reason }: InstructionSet): string {
  return `  ${name.padEnd(13)} ${available ? 'yes' : 'no '}  ${reason}`;
}

/** Nothing where one instruction set is the fastest for every number of queries. */
export function chosenLines({ few, many, codesFrom, prefiltersFrom }: ChosenIsas): string[] {
  if (few === many) return [];
  const from = (queries: number): string => (queries < 0 ? 'never' : `from ${queries} queries at once`);
  return [`                ${few}; ${many} over codes ${from(codesFrom)}, over prefilters ${from(prefiltersFrom)}`];
}

function searchLines(search: ReturnType<typeof searchEngine>): string[] {
  if (search.engine === 'reference') {
    return [
      `search          in TypeScript: exact but slow, because the native engine is missing (${search.reason})`,
      '                install a C++ compiler and run `npm run build`',
    ];
  }
  return [
    `search          native, ${search.origin}, ${search.isa}, ${formatNumberOf(search.threads, 'thread')}`,
    ...chosenLines(search.chosenIsas),
    ...search.instructionSets.map(setLine),
    ...gpuLines(search.gpus),
  ];
}
