import { cpus, freemem, loadavg, totalmem } from 'node:os';
import { availableCores } from '../src/embedding/available-cores.ts';
import { packageVersion } from '../src/package-root.ts';
import type { Kernel } from '../src/vector-index/kernel.ts';
import type { BenchEngine } from './bench-engine.ts';

/** The machine and the versions that figures come from. */
export interface MachineFacts {
  /** ISO 8601, UTC. */
  readonly date: string;
  readonly processor: string;
  readonly cores: number;
  readonly memoryBytes: number;
  /** Processes that wanted to run before the measurement, mean of a minute; above some 0.3 the figures are disturbed. */
  readonly loadBefore: number;
  readonly platform: string;
  readonly node: string;
  readonly trawl: string;
  /** `faiss-cpu 1.15.1`, of each engine that ran. */
  readonly engines: readonly string[];
}

export interface Environment extends MachineFacts {
  /** Of the engine: the one in use, and all that the machine has. */
  readonly isa: string;
  readonly instructionSets: readonly string[];
  /** Reading speed of the memory as measured elsewhere (`--bandwidth-gb`), 10^9 bytes a second; null: not told. */
  readonly bandwidthGbPerS: number | null;
}

export function machineFacts({
  engines,
  loadBefore,
}: {
  engines: readonly { readonly version: string }[];
  loadBefore: number;
}): MachineFacts {
  return {
    date: new Date().toISOString(),
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableCores(),
    memoryBytes: totalmem(),
    loadBefore,
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    trawl: packageVersion,
    engines: engines.map(({ version }) => version),
  };
}

export function environment(facts: {
  kernel: Kernel | undefined;
  engines: readonly BenchEngine[];
  loadBefore: number;
  bandwidthGbPerS: number | null;
}): Environment {
  const { kernel, bandwidthGbPerS } = facts;
  return {
    ...machineFacts(facts),
    isa: kernel?.isa ?? 'reference',
    instructionSets: kernel?.instructionSets.filter(({ available }) => available).map(({ name }) => name) ?? [],
    bandwidthGbPerS,
  };
}

/** Memory that can be had without writing to disk: what is free, within the limit of the control group. */
export function availableMemoryBytes(): number {
  const limit = process.constrainedMemory() ?? 0;
  return limit > 0 && limit < totalmem() ? Math.min(freemem(), limit) : freemem();
}

/** Before this program has done anything that would count. */
export function loadNow(): number {
  return loadavg()[0]!;
}
