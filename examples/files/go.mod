module example.com/files-agent

go 1.19
