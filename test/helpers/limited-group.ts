import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { controlGroupFolders } from '../../src/base/system/control-group.ts';

export interface GroupLimits {
  /** CPU quota in cores. */
  readonly cores?: number;
  readonly memoryBytes?: number;
  /** Set the limits on the parent of the process's group. */
  readonly onParent?: boolean;
}

export interface LimitedGroup {
  /** Starts a program in the group. With `namespace`, in new namespaces in which the group is `/`, as in a container. */
  spawn(
    command: readonly string[],
    options: { readonly env: NodeJS.ProcessEnv; readonly namespace?: boolean },
  ): ChildProcess;
  /** Call it after the group's processes have ended. */
  remove(): void;
}

const ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"';
/** For a new mount and cgroup namespace: mounts at $0 only the hierarchy below this group. */
const REMOUNT = 'mount --make-rprivate / && umount "$0" && mount -t "$1" -o "$2" cgroup "$0" && shift 2 && exec "$@"';

/** Creates a control group with limits, or returns why that is impossible. Needs root. */
export function limitedGroup(limits: GroupLimits): LimitedGroup | { readonly missing: string } {
  const controller = limits.cores === undefined ? 'memory' : 'cpu';
  const place = placeFor(controller);
  if (place === undefined) return { missing: `no control group hierarchy has the ${controller} controller` };
  const outer = join(place.folder, `trawl-test-${process.pid}`);
  const inner = limits.onParent === true ? join(outer, 'inner') : outer;
  try {
    mkdirSync(inner, { recursive: true });
    for (const [file, text] of filesOf(limits, place.v2)) writeFileSync(join(outer, file), text);
  } catch (error) {
    for (const folder of new Set([inner, outer])) removeIfThere(folder);
    return { missing: `no control group can be created here (${(error as Error).message})` };
  }
  return {
    spawn(command, { env, namespace = false }) {
      const remount = ['unshare', '--cgroup', '--mount', 'sh', '-c', REMOUNT, place.mount];
      const into = namespace ? [...remount, place.v2 ? 'cgroup2' : 'cgroup', place.v2 ? 'rw' : controller] : [];
      return spawn('sh', ['-c', ENTER, inner, ...into, ...command], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    },
    remove() {
      for (const folder of new Set([inner, outer])) rmdirSync(folder);
    },
  };
}

/** The folder in which a group can be created: with version 1 that of this process's group, with version 2 a group that delegates the controller. */
function placeFor(controller: 'cpu' | 'memory'): { folder: string; mount: string; v2: boolean } | undefined {
  const own = controlGroupFolders(controller);
  if (own.length > 0) return { folder: own[0]!, mount: own.at(-1)!, v2: false };
  const unified = controlGroupFolders('v2');
  const folder = unified.find((each) =>
    readFileSync(join(each, 'cgroup.subtree_control'), 'utf8').split(/\s+/).includes(controller),
  );
  return folder === undefined ? undefined : { folder, mount: unified.at(-1)!, v2: true };
}

function filesOf({ cores, memoryBytes }: GroupLimits, v2: boolean): [string, string][] {
  if (cores === undefined) return [[v2 ? 'memory.max' : 'memory.limit_in_bytes', String(memoryBytes)]];
  const quota = String(cores * 100_000);
  if (v2) return [['cpu.max', `${quota} 100000`]];
  return [
    ['cpu.cfs_period_us', '100000'],
    ['cpu.cfs_quota_us', quota],
  ];
}

function removeIfThere(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // It was never created.
  }
}
