import { readFileSync } from 'node:fs';
import { cpus, freemem, totalmem } from 'node:os';
import { availableCores } from '../../src/embedding/available-cores.ts';
import { type CudaFacts, cudaFacts } from '../../src/embedding/cuda-libraries.ts';
import { listModels } from '../../src/embedding/model-location.ts';
import { onnxruntimeFacts } from '../../src/embedding/onnx-session.ts';
import { packageVersion } from '../../src/package-root.ts';
import { sqliteVersion } from '../../src/passages/passage-file.ts';
import { type InstructionSet, loadKernel } from '../../src/vector-index/kernel.ts';
import { defineCommand, EXIT } from '../command.ts';
import { formatBytes } from '../format.ts';

/** Instruction sets that matter to dense retrieval, in the words of /proc/cpuinfo (x86 `flags`, Arm `Features`). */
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
  summary: 'say what this machine has and what is missing',
  description:
    'Reports the program, Node.js, the processor with the instruction sets that matter, the cores and memory this process ' +
    'may use, onnxruntime with its execution providers, SQLite, and the models at hand.',
  positionals: { usage: '', help: {}, min: 0, max: 0 },
  options: {},
  examples: ['trawl doctor', 'trawl doctor --json'],
  async run({ options, out }) {
    const onnxruntime = onnxruntimeFacts();
    const facts = {
      trawl: packageVersion,
      node: process.version,
      platform: `${process.platform} ${process.arch}`,
      processor: cpus()[0]?.model ?? 'unknown',
      instructionSets: instructionSets(),
      cores: availableCores(),
      memoryBytes: totalmem(),
      freeMemoryBytes: freemem(),
      onnxruntime: onnxruntime.version,
      executionProviders: onnxruntime.providers,
      cuda: cudaFacts(),
      sqlite: sqliteVersion(),
      search: searchEngine(),
      models: listModels(),
    };
    out(options.json ? JSON.stringify(facts) : report(facts));
    return EXIT.ok;
  },
});

interface Facts {
  readonly trawl: string;
  readonly node: string;
  readonly platform: string;
  readonly processor: string;
  readonly instructionSets: readonly string[];
  readonly cores: number;
  readonly memoryBytes: number;
  readonly freeMemoryBytes: number;
  readonly onnxruntime: string;
  readonly executionProviders: readonly string[];
  readonly cuda: CudaFacts;
  readonly sqlite: string;
  readonly search: SearchEngine;
  readonly models: readonly string[];
}

function report(facts: Facts): string {
  return [
    `trawl           ${facts.trawl} on Node.js ${facts.node}, ${facts.platform}`,
    `processor       ${facts.processor}, ${facts.cores} cores for this process`,
    `  instructions  ${facts.instructionSets.join(', ') || 'unknown on this system'}`,
    `memory          ${formatBytes(facts.memoryBytes)}, ${formatBytes(facts.freeMemoryBytes)} free`,
    ...searchLines(facts.search),
    `onnxruntime     ${facts.onnxruntime}, execution providers ${facts.executionProviders.join(', ')}`,
    `  CUDA          ${facts.cuda.installed ? '' : 'no: '}${facts.cuda.reason}`,
    `SQLite          ${facts.sqlite}`,
    `models          ${facts.models.join(', ') || 'none: put a model folder into models/'}`,
  ].join('\n');
}

/** Linux only; other systems do not say. */
function instructionSets(): string[] {
  try {
    const line = /^(?:flags|Features)\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? '';
    const flags = new Set(line.trim().split(/\s+/));
    return NOTABLE_FLAGS.filter((flag) => flags.has(flag));
  } catch {
    return [];
  }
}

type SearchEngine =
  | { readonly engine: 'native'; readonly isa: string; readonly instructionSets: readonly InstructionSet[] }
  | { readonly engine: 'reference'; readonly reason: string };

function searchEngine(): SearchEngine {
  const loaded = loadKernel();
  if (!loaded.ok) return { engine: 'reference', reason: loaded.reason };
  return { engine: 'native', isa: loaded.kernel.isa, instructionSets: loaded.kernel.instructionSets };
}

function searchLines(search: SearchEngine): string[] {
  if (search.engine === 'reference') {
    return [
      `search          in TypeScript: exact, but slow, because the native engine is not there (${search.reason})`,
      '                install a C++ compiler and run npm run setup',
    ];
  }
  return [
    `search          native, ${search.isa}`,
    ...search.instructionSets.map(
      ({ name, available, reason }) => `  ${name.padEnd(13)} ${available ? 'yes' : 'no '}  ${reason}`,
    ),
  ];
}
