module example-sign

go 1.24
