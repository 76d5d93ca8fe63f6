import { cpus, loadavg } from 'node:os';
import { packageVersion } from '../src/base/package-root.ts';
import { availableCores } from '../src/base/system/cores.ts';
import { memoryLimit } from '../src/base/system/memory.ts';
import type { Kernel } from '../src/engine/native/kernel.ts';

/** The machine and the versions of the programs. */
export interface MachineFacts {
  /** ISO 8601, UTC. */
  readonly date: string;
  readonly processor: string;
  readonly cores: number;
  readonly memoryBytes: number;
  /** Load average of the minute before the measurement. Above about 0.3 other work disturbs the figures. */
  readonly loadBefore: number;
  readonly platform: string;
  readonly node: string;
  readonly trawl: string;
  /** The version of each engine that ran, such as `faiss-cpu 1.15.1`. */
  readonly engines: readonly string[];
}

export interface Environment extends MachineFacts {
  /** The instruction set that the engine uses. */
  readonly isa: string;
  /** All instruction sets of the machine. */
  readonly instructionSets: readonly string[];
  /** Memory bandwidth from `--bandwidth-gb`, in 10^9 bytes a second; null if not given. */
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
    memoryBytes: memoryLimit(),
    loadBefore,
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    trawl: packageVersion,
    engines: engines.map(({ version }) => version),
  };
}

export function environment(facts: {
  kernel: Kernel | undefined;
  engines: readonly { readonly version: string }[];
  loadBefore: number;
  bandwidthGbPerS: number | null;
}): Environment {
  const { kernel, bandwidthGbPerS } = facts;
  return {
    ...machineFacts(facts),
    isa: kernel?.isa ?? 'reference',
    instructionSets:
      kernel
        ?.isas()
        .filter(({ available }) => available)
        .map(({ name }) => name) ?? [],
    bandwidthGbPerS,
  };
}

/** The load average of the last minute. Call it before this program does any work. */
export function loadNow(): number {
  return loadavg()[0]!;
}
