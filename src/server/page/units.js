/** A number of bytes for people. */
export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = value >= 1 ? Math.min(units.length - 1, Math.floor(Math.log2(value) / 10)) : 0;
  return `${Number((value / 1024 ** power).toPrecision(3))} ${units[power]}`;
}

/** `1 term`, `2 terms`. */
export function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
