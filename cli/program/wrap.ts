/** Wraps a paragraph into lines of at most `width` characters, indentation included. A longer word has its own line. */
export function wrapParagraph(text: string, { indent, width }: { indent: number; width: number }): string[] {
  const margin = ' '.repeat(indent);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && indent + line.length + 1 + word.length > width) {
      lines.push(margin + line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, margin + line];
}
