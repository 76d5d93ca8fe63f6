import { readFileSync } from 'node:fs';

/** Reads a file of /proc or /sys; throws where it is not there. */
export type ReadText = (path: string) => string;

export function readTextFile(path: string): string {
  return readFileSync(path, 'utf8');
}

/**
 * What a file says in the control group of this process and in each group around it, innermost first; a group without
 * the file is passed over with ''. Limits hold for all that lies within, so the tightest counts. `controller`: '' for version
 * 2, the name of a controller's hierarchy for version 1.
 */
export function controlGroupTexts(file: string, controller: string, readText: ReadText): string[] {
  const root = controller === '' ? '/sys/fs/cgroup' : `/sys/fs/cgroup/${controller}`;
  return groupsOf(controller, readText).map((group) => {
    try {
      return readText(`${root}${group}/${file}`).trim();
    } catch {
      return '';
    }
  });
}

/** Paths of the group and those around it, '' for the root: inside a container that is all there is to see. */
function groupsOf(controller: string, readText: ReadText): string[] {
  let text: string;
  try {
    text = readText('/proc/self/cgroup');
  } catch {
    return [''];
  }
  // "0::/path" in version 2, "4:cpu,cpuacct:/path" in version 1.
  const line = text
    .split('\n')
    .map((candidate) => /^\d+:([^:]*):(\/.*)$/.exec(candidate))
    .find(
      (match) => match !== null && (controller === '' ? match[1] === '' : match[1]!.split(',').includes(controller)),
    );
  const parts = (line?.[2] ?? '').split('/').filter((part) => part !== '' && part !== '..');
  return Array.from({ length: parts.length + 1 }, (_, i) =>
    parts
      .slice(0, parts.length - i)
      .map((part) => `/${part}`)
      .join(''),
  );
}
