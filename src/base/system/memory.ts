import { freemem, totalmem } from 'node:os';
import { controlGroupFolders, type ReadText, readTextFile, textOrEmpty } from './control-group.ts';

/**
 * Maximum memory of this process in bytes: the machine's memory, or the limit of the control group if it is lower. Must not
 * depend on other processes, because decisions based on it affect the last bits of vectors.
 */
export function memoryLimit(readText: ReadText = readTextFile, machineBytes: number = totalmem()): number {
  return Math.min(machineBytes, ...controlGroups(readText).map(({ limit }) => limit));
}

/**
 * Bytes of memory that this process can currently allocate without swapping or being killed: what the machine or, if less, the
 * control group has left. Page cache counts as available.
 */
export function availableMemory(readText: ReadText = readTextFile, machineFreeBytes: number = freemem()): number {
  const left = controlGroups(readText).map(({ limit, used }) => Math.max(0, limit - used));
  return Math.min(machineFreeBytes, ...left);
}

interface GroupMemory {
  /** Infinity if the group has no limit. */
  readonly limit: number;
  /** Excludes page cache, which the kernel can reclaim. */
  readonly used: number;
}

function controlGroups(readText: ReadText): GroupMemory[] {
  const groups = (hierarchy: 'v2' | 'memory', files: { limit: string; usage: string; cache: RegExp }): GroupMemory[] =>
    controlGroupFolders(hierarchy, readText).map((folder) => {
      const cache = [...textOrEmpty(`${folder}/memory.stat`, readText).matchAll(files.cache)];
      const used = parseBytes(textOrEmpty(`${folder}/${files.usage}`, readText)) ?? 0;
      return {
        limit: parseBytes(textOrEmpty(`${folder}/${files.limit}`, readText)) ?? Number.POSITIVE_INFINITY,
        used: cache.reduce((rest, [, bytes]) => rest - Number(bytes), used),
      };
    });
  return [
    ...groups('v2', { limit: 'memory.max', usage: 'memory.current', cache: /^(?:in)?active_file (\d+)$/gm }),
    ...groups('memory', {
      limit: 'memory.limit_in_bytes',
      usage: 'memory.usage_in_bytes',
      cache: /^total_(?:in)?active_file (\d+)$/gm,
    }),
  ];
}

/** Undefined for "max" and for a missing file. For no limit, version 1 has a number near 2^63, which needs no special case. */
function parseBytes(text: string): number | undefined {
  return /^\d+$/.test(text) ? Number(text) : undefined;
}
