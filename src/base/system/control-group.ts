import { readFileSync } from 'node:fs';

/** Reads a file in /proc or /sys; throws if it does not exist. */
export type ReadText = (path: string) => string;

export function readTextFile(path: string): string {
  return readFileSync(path, 'utf8');
}

/** The control group hierarchy of version 2, or of one controller of version 1. */
type Hierarchy = 'v2' | 'cpu' | 'memory';

/**
 * Folders of this process's control group and its ancestors, innermost first. A group's limit also applies to its descendants, so
 * callers use the tightest. Empty if the system has no control groups.
 *
 * The kernel names a group relative to the root of the cgroup namespace, and a container mounts only a part of the
 * hierarchy; /proc/self/mountinfo says which part is mounted where.
 */
export function controlGroupFolders(hierarchy: Hierarchy, readText: ReadText = readTextFile): string[] {
  const group = groupOf(hierarchy, textOrEmpty('/proc/self/cgroup', readText));
  if (group === undefined) return [];
  return mountsOf(hierarchy, textOrEmpty('/proc/self/mountinfo', readText)).flatMap(({ root, folder }) =>
    withAncestors(group.startsWith(root) ? group.slice(root.length) : '').map((path) => `${folder}${path}`),
  );
}

/** The trimmed text of a file; '' if it does not exist, as in a group without this controller. */
export function textOrEmpty(path: string, readText: ReadText): string {
  try {
    return readText(path).trim();
  } catch {
    return '';
  }
}

/** Path of this process's group, from a line such as `0::/path` (version 2) or `4:cpu,cpuacct:/path` (version 1). */
function groupOf(hierarchy: Hierarchy, text: string): string | undefined {
  for (const line of text.split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined) continue;
    if (hierarchy === 'v2' ? controllers === '' : controllers!.split(',').includes(hierarchy)) return path;
  }
  return undefined;
}

/** Mount points of a hierarchy; `root` is the mounted group, '' for the top one. */
function mountsOf(hierarchy: Hierarchy, text: string): { root: string; folder: string }[] {
  return text.split('\n').flatMap((line) => {
    // <id> <parent> <device> <root> <mount point> <options> [<field> …] - <type> <source> <super options>
    const [mount = '', filesystem = ''] = line.split(' - ');
    const [, , , root = '', folder = ''] = mount.split(' ');
    const [type, , options = ''] = filesystem.split(' ');
    const mounted =
      hierarchy === 'v2' ? type === 'cgroup2' : type === 'cgroup' && options.split(',').includes(hierarchy);
    return mounted ? [{ root: unescaped(root).replace(/\/$/, ''), folder: unescaped(folder) }] : [];
  });
}

/** Decodes mountinfo's octal escapes, such as `\040` for a space. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** '/a/b' → ['/a/b', '/a', ''] */
function withAncestors(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '' && part !== '..');
  return Array.from({ length: parts.length + 1 }, (_, i) =>
    parts
      .slice(0, parts.length - i)
      .map((part) => `/${part}`)
      .join(''),
  );
}
